// UserCalls: the statements of one function of ctx.tx, on a connection of ours.
//
// U1. They go one after the other, also when they are not awaited, while the function runs and never again.

import { RepriseError } from "../../base/index.ts";

export class UserCalls {
  #isOver = false;
  #last: Promise<unknown> = Promise.resolve();

  /** U1 */
  protected inTurn<T>(run: () => Promise<T>): Promise<T> {
    const answer = this.#last.then(() => {
      if (this.#isOver)
        throw new RepriseError("USAGE", "query was called after its ctx.tx had ended. Await it inside.");
      return run();
    });
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  close(): void {
    this.#isOver = true;
  }

  /** Once nothing that was begun is under way any more. */
  async settled(): Promise<void> {
    this.close();
    await this.#last;
  }
}
