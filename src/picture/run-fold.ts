// Run fold: the steps of a run of any kind, with the times of its entries, as the timeline and pictures need them.

import { FlowReader, StepFold, type CurrentStep, type HolderSign, type Step } from "../explain/index.ts";
import type { Entry, RunRecord } from "../kernel/index.ts";
import { KeptFolds, type Fold } from "./kept-folds.ts";

export class RunFold implements Fold {
  /** The times of entries, by seq - 1. */
  readonly times: number[] = [];
  /** Of a flow. */
  readonly flow: FlowReader | undefined;
  readonly #steps: StepFold | undefined;

  constructor({ kind }: Pick<RunRecord, "kind">, before?: RunFold) {
    if (kind === "flow") this.flow = new FlowReader(before?.flow?.voids, { keepsValues: false });
    else this.#steps = new StepFold(before === undefined ? [] : before.#steps?.retries);
  }

  read(entry: Entry): void {
    this.times.push(entry.at);
    this.flow?.read(entry);
    this.#steps?.read(entry);
  }

  get isStale(): boolean {
    return this.flow?.isStale ?? this.#steps?.isStale ?? false;
  }

  /** By command or node, also those before a retry. */
  get steps(): ReadonlyMap<string, Step> {
    if (this.#steps !== undefined) return this.#steps.history;
    return new Map((this.flow?.steps ?? []).map((step) => [step.command, step]));
  }

  get signs(): readonly HolderSign[] {
    return this.#steps?.signs ?? [];
  }

  get current(): CurrentStep | undefined {
    return this.#steps?.current;
  }

  /** Steps that are requested after a retry have other idempotency keys (retry-record.V3). */
  get wasRetried(): boolean {
    return (this.#steps?.retries.length ?? 0) > 0;
  }
}

export const runFolds = new KeptFolds<RunFold>((_store, record, before) => new RunFold(record, before));
