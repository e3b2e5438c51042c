// UserCalls: runs the statements of one ctx.tx function on Reprise's connection.
//
// user-calls.U1. Statements run one after the other, also when the function does not await them, and only while it runs.
// user-calls.U2. A function that returns before its last statement has settled fails: it cannot have used the result.
// user-calls.U3. A function that sends no statement and does not return is aborted after the time in which the server ends an idle
//   transaction, because other transactions wait for its locks.

import { RepriseError, type Timers } from "../../base/index.ts";

export class UserCalls {
  /** user-calls.U3. Rejects; never resolves. */
  readonly idleTimeout: Promise<never>;
  readonly #timers: Timers;
  readonly #idleMs: number;
  #rejectIdle: (error: RepriseError) => void = () => undefined;
  #stopTimer: () => void = () => undefined;
  #isOver = false;
  #inFlight = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(timers: Timers, idleMs: number) {
    this.#timers = timers;
    this.#idleMs = idleMs;
    this.idleTimeout = new Promise((_resolve, reject) => (this.#rejectIdle = reject));
    this.idleTimeout.catch(() => undefined);
    this.#startTimer();
  }

  /** user-calls.U1 */
  protected enqueue<T>(run: () => Promise<T>): Promise<T> {
    this.#stopTimer();
    this.#inFlight += 1;
    const answer = this.#last
      .then(() => {
        if (this.#isOver)
          throw new RepriseError(
            "USAGE",
            "`query` was called after its ctx.tx function had returned, so its transaction has ended. Await every query inside the function.",
          );
        return run();
      })
      .finally(() => {
        this.#inFlight -= 1;
        if (this.#inFlight === 0 && !this.#isOver) this.#startTimer();
      });
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  /** user-calls.U3 */
  #startTimer(): void {
    const giveUp = (): void =>
      this.#rejectIdle(
        new RepriseError(
          "ATTEMPT_TIMEOUT",
          `The ctx.tx function sent no SQL for ${this.#idleMs} ms and did not return, so its transaction was rolled back. Inside ctx.tx await only \`db.query\`; do other work before or after it.`,
        ),
      );
    this.#stopTimer = this.#timers.set(this.#idleMs, giveUp, { ref: false });
  }

  /** user-calls.U2. Call it when the function has returned. Throws when its transaction must not be committed. */
  async ended(): Promise<void> {
    const wasInFlight = this.#inFlight > 0;
    await this.settled();
    if (wasInFlight)
      throw new RepriseError(
        "USAGE",
        "The ctx.tx function returned before its last query had finished, so its transaction was rolled back. Await every query inside the function.",
      );
  }

  close(): void {
    this.#isOver = true;
    this.#stopTimer();
  }

  /** Closes the handle and waits for statements in flight. */
  async settled(): Promise<void> {
    this.close();
    await this.#last;
  }
}
