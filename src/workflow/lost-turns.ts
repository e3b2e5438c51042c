// Lost turns: how often the holder of a lost turn may have called an operation before (attempts.X1).

import type { EarlierExecutions } from "./earlier-executions.ts";
import { nodeOfCaller } from "./scope.ts";

const NONE: readonly number[] = [];

export class LostTurns {
  /** The heads of the journal when turns of the run were lost or returned. Empty for most runs. */
  heads: readonly number[] = NONE;
  /** The entry that the code received last in the replay, or that it started from. Undefined after the replay. */
  deliveredSeq: number | undefined = 1;

  readonly #earlier: EarlierExecutions | undefined;

  /** `earlier`: undefined if the run was never retried. */
  constructor(earlier: EarlierExecutions | undefined) {
    this.#earlier = earlier;
  }

  /** How often the call that the code requests now may have been executed: before the run was retried, and in lost turns. */
  countNow(command: string, index: number): number {
    const earlier = this.#earlier?.count(command, index) ?? 0;
    if (this.heads.length === 0) return earlier;
    const node = nodeOfCaller();
    const requestedAt = node === undefined ? this.deliveredSeq : node.answeredSeq;
    if (requestedAt === undefined) return earlier;
    // The executions before a retry include the turns that were lost before it.
    const since = earlier === 0 ? requestedAt : Math.max(requestedAt, this.#earlier?.retriedAt ?? 0);
    return earlier + this.heads.filter((head) => head >= since).length;
  }
}
