// UserCalls: the statements of one function of ctx.tx, on a connection of ours.
//
// U1. They go one after the other, also when they are not awaited, while the function runs and never again.
// U2. What the function did not await, it cannot have decided by: with something under way it has not ended well.
// U3. A function that asks for nothing and does not end is given up as the server gives up its transaction. Everybody else
//     in this process waits for it.

import { RepriseError, type Timers } from "../../base/index.ts";

export class UserCalls {
  /** U3. Rejects; never resolves. */
  readonly idleTimeout: Promise<never>;
  readonly #timers: Timers;
  readonly #silentMs: number;
  #rejectIdle: (error: RepriseError) => void = () => undefined;
  #stopWaiting: () => void = () => undefined;
  #isOver = false;
  #underWay = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(timers: Timers, silentMs: number) {
    this.#timers = timers;
    this.#silentMs = silentMs;
    this.idleTimeout = new Promise((_resolve, reject) => (this.#rejectIdle = reject));
    this.idleTimeout.catch(() => undefined);
    this.#wait();
  }

  /** U1 */
  protected inTurn<T>(run: () => Promise<T>): Promise<T> {
    this.#stopWaiting();
    this.#underWay += 1;
    const answer = this.#last
      .then(() => {
        if (this.#isOver)
          throw new RepriseError("USAGE", "query was called after its ctx.tx had ended. Await it inside.");
        return run();
      })
      .finally(() => {
        this.#underWay -= 1;
        if (this.#underWay === 0 && !this.#isOver) this.#wait();
      });
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  /** U3 */
  #wait(): void {
    const giveUp = (): void =>
      this.#rejectIdle(
        new RepriseError(
          "ATTEMPT_TIMEOUT",
          `The function of ctx.tx asked for nothing for ${this.#silentMs} ms and did not end. It may wait for its own SQL only.`,
        ),
      );
    this.#stopWaiting = this.#timers.set(this.#silentMs, giveUp, { ref: false });
  }

  /** U2. The function has answered: throws when that is not to be committed. */
  async ended(): Promise<void> {
    const isLeftAlone = this.#underWay > 0;
    await this.settled();
    if (isLeftAlone)
      throw new RepriseError("USAGE", "The function of ctx.tx ended before its query did. Await every query inside.");
  }

  close(): void {
    this.#isOver = true;
    this.#stopWaiting();
  }

  /** Once nothing that was begun is under way any more. */
  async settled(): Promise<void> {
    this.close();
    await this.#last;
  }
}
