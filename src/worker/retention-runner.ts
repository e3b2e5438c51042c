// RetentionRunner: deletes the ended runs of this worker's definitions when their retention is over (retention.R1).
//
// retention-runner.N1. A pass costs two index seeks per definition and status when no run is old enough. It deletes in small
//   batches with a pause between them; other workers may run the same pass at the same time.
// retention-runner.N2. The next pass starts when the oldest ended run is old enough, up to a minute later: so one pass deletes
//   many runs, and the first of several workers leaves nothing to the others.
// retention-runner.N3. A pass starts where the last one ended: the runs before are kept by their family or by a fork. While there
//   are such runs, a pass starts at the oldest run again every hour. Otherwise it does so about once per shortest retention, for
//   runs that ended in another process.

import type { EpochMs, Random, Timers } from "../base/index.ts";
import { emit, FINAL_STATUSES, isObserved, type FinalStatus, type RetentionMs, type Store } from "../kernel/index.ts";

export interface RetentionRunnerHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: Random;
  /** By definition. */
  readonly policies: ReadonlyMap<string, RetentionMs>;
  report(error: unknown): void;
}

interface Rule {
  readonly definition: string;
  readonly status: FinalStatus;
  readonly keepMs: number;
  /** retention-runner.N3 */
  after: EpochMs | undefined;
}

/** A worker that starts has more important work. */
const FIRST_MS = 10_000;
/** retention-runner.N2 */
const MAX_SLACK_MS = 60_000;
/** retention-runner.N3 */
const WHOLE_MS = 3_600_000;
const MAX_WHOLE_MS = 24 * WHOLE_MS;
/** retention-runner.N1 */
const PAUSE_MS = 20;
const RETRY_MS = 60_000;

export class RetentionRunner {
  readonly #host: RetentionRunnerHost;
  readonly #rules: readonly Rule[];
  /** Definitions of which runs were deleted since their unused start keys were. */
  readonly #withKeys = new Set<string>();
  #alarm: { readonly at: EpochMs; readonly cancel: () => void } | undefined;
  #nextWholeAt: EpochMs = 0;
  /** How many runs the passes since the last whole one left, that one included. */
  #kept = 0;
  #isRunning = false;
  #stopped = false;

  constructor(host: RetentionRunnerHost) {
    this.#host = host;
    this.#rules = [...host.policies].flatMap(([definition, policy]) =>
      FINAL_STATUSES.flatMap((status): Rule[] => {
        const keepMs = policy[status];
        return keepMs === undefined ? [] : [{ definition, status, keepMs, after: undefined }];
      }),
    );
  }

  start(): void {
    if (this.#rules.length > 0) this.#dueAt(this.#host.store.now() + this.#spread(FIRST_MS));
  }

  /** A run ended in this process. */
  onEnded(definition: string, status: string): void {
    if (this.#rules.length === 0) return;
    const rule = this.#rules.find((one) => one.definition === definition && one.status === status);
    if (rule !== undefined) this.#dueAt(this.#expiry(rule, this.#host.store.now()));
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
  }

  /** When to delete a run that ended at this time. */
  #expiry({ keepMs }: Rule, endedAt: EpochMs): EpochMs {
    return endedAt + keepMs + 1 + this.#spread(Math.min(MAX_SLACK_MS, keepMs / 10));
  }

  /** Between half of it and all of it. */
  #spread(ms: number): number {
    const [byte = 0] = this.#host.random.bytes(1);
    return Math.ceil((ms * (256 + byte)) / 512);
  }

  #dueAt(at: EpochMs): void {
    if (this.#stopped || this.#isRunning || (this.#alarm !== undefined && this.#alarm.at <= at)) return;
    this.#alarm?.cancel();
    const ms = Math.max(0, at - this.#host.store.now());
    this.#alarm = { at, cancel: this.#host.timers.set(ms, () => void this.#run(), { ref: false }) };
  }

  async #run(): Promise<void> {
    this.#alarm = undefined;
    this.#isRunning = true;
    let next: EpochMs;
    try {
      next = await this.#pass();
    } catch (error) {
      if (!this.#stopped) this.#host.report(error);
      next = this.#host.store.now() + RETRY_MS;
    }
    this.#isRunning = false;
    this.#dueAt(next);
  }

  /** Returns when the next pass is due. */
  async #pass(): Promise<EpochMs> {
    const { store } = this.#host;
    const now = store.now();
    const isWhole = now >= this.#nextWholeAt;
    if (isWhole) this.#kept = 0;
    let next: EpochMs = Number.POSITIVE_INFINITY;
    for (const rule of this.#rules) {
      if (this.#stopped) break;
      const endedAt = await this.#expireAll(rule, isWhole);
      if (endedAt !== undefined) next = Math.min(next, this.#expiry(rule, endedAt));
    }
    if (isWhole)
      for (const definition of this.#withKeys) {
        this.#withKeys.delete(definition);
        if (!this.#stopped) await store.deleteUnusedKeys(definition);
      }
    if (isWhole || this.#kept > 0)
      this.#nextWholeAt = Math.min(
        isWhole ? Number.POSITIVE_INFINITY : this.#nextWholeAt,
        now + (this.#kept > 0 ? WHOLE_MS : this.#idleMs),
      );
    return Math.min(next, this.#nextWholeAt);
  }

  get #idleMs(): number {
    const shortest = Math.min(...this.#rules.map(({ keepMs }) => keepMs));
    return Math.min(MAX_WHOLE_MS, Math.max(WHOLE_MS, shortest));
  }

  /** Returns the end of the oldest run that is too young. */
  async #expireAll(rule: Rule, isWhole: boolean): Promise<EpochMs | undefined> {
    const { definition, status, keepMs } = rule;
    const { store } = this.#host;
    const endedBefore = store.now() - keepMs;
    let after = isWhole ? undefined : rule.after;
    for (;;) {
      const batch = await store.expire({ definition, status, endedBefore, after });
      this.#kept += batch.kept;
      if (batch.runs > 0) {
        this.#withKeys.add(definition);
        if (isObserved()) emit({ event: "runs.expired", definition, status, runs: batch.runs });
      }
      if (batch.after === undefined) {
        rule.after = endedBefore - 1;
        return batch.nextEndedAt;
      }
      if (this.#stopped) return undefined;
      ({ after } = batch);
      await new Promise<void>((resolve) => void this.#host.timers.set(PAUSE_MS, resolve, { ref: false }));
    }
  }
}
