// Checkpoints as people see them: the nine fields of seed 000, made from a step's entry and the state after it.
//
// What is heavy is made when it is looked at: a thousand checkpoints of a large state share the texts of what did not change.

import { decode } from "../base/index.ts";
import type { ChannelTexts } from "../kernel/index.ts";
import type { RecordedIO } from "./recorded-io.ts";

/** One activation of a node, ready to run (seed 000). */
export interface WorkItem<State = unknown> {
  /** The step it belongs to. */
  readonly step: number;
  /** Where it stands among the items of its step: 64 bits, made from the path that led here. */
  readonly orderKey: bigint;
  readonly node: string;
  /** What its node is given. */
  readonly state: State;
  /** Counts from 0. */
  readonly attempt: number;
  /** The node that led here; empty where START did. */
  readonly parentNode: string;
  /** Which of that node's edges did, counted from 0 in the order written. */
  readonly edgeIndex: number;
  /** Of a spread: which of its items, and the item. */
  readonly spreadIndex?: number;
  readonly item?: unknown;
}

/**
 * Where a graph stood after one of its steps: what `run.checkpoint` and `run.checkpoints` give.
 *
 * @example
 * ```ts
 * import type { Checkpoint } from "reprise";
 * const next = (checkpoint: Checkpoint): string[] => checkpoint.frontier.map(({ node }) => node);
 * ```
 */
export interface Checkpoint<State = unknown> {
  /** The run that made the step: of a fork's steps before it began, the run it comes from. */
  readonly runId: string;
  /** 0 is the input. */
  readonly step: number;
  readonly state: State;
  /** What runs next, in the order written; empty at the end. */
  readonly frontier: readonly WorkItem<State>[];
  /** What chance is drawn from: 64 bits, the same in every replay and every fork. */
  readonly rngSeed: bigint;
  /** What the step's nodes asked of the outside; only where it was read. */
  readonly recordedIO?: readonly RecordedIO[];
  /** `sha256:` and 64 hex digits; unique in the store (seed 003). */
  readonly idempotencyKey: string;
  readonly timestamp: Date;
  /** What `ctx.label` called it. */
  readonly label?: string;
}

/** What a step's entry holds. */
export interface StepData {
  readonly step: number;
  readonly key: string;
  readonly label?: string;
  readonly frontier: readonly StoredItem[];
  readonly waiting?: readonly unknown[];
}
export interface StoredItem {
  readonly node: string;
  readonly path: string;
  readonly orderKey: string;
  readonly parent: string;
  readonly edge: number;
  readonly spread?: number;
  readonly input?: unknown;
}

export interface CheckpointParts {
  readonly runId: string;
  readonly rngSeed: bigint;
  readonly data: StepData;
  readonly at: number;
  readonly texts: ChannelTexts;
  readonly recordedIO?: readonly RecordedIO[];
}

export function checkpointOf({ runId, rngSeed, data, at, texts, recordedIO }: CheckpointParts): Checkpoint {
  const { step, key, label } = data;
  let state: unknown;
  const stateOf = (): unknown => (state ??= stateValue(texts));
  let frontier: readonly WorkItem[] | undefined;
  return {
    runId,
    step,
    get state() {
      return stateOf();
    },
    get frontier() {
      return (frontier ??= data.frontier.map((item) => workItemOf(item, step + 1, stateOf)));
    },
    rngSeed,
    ...(recordedIO !== undefined && { recordedIO }),
    idempotencyKey: key,
    timestamp: new Date(at),
    ...(label !== undefined && { label }),
  };
}

/** The values of a state. */
export function stateValue(texts: ChannelTexts): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Array.from(texts, ([name, text]) => [name, decode(text)]));
}

function workItemOf(item: StoredItem, step: number, stateOf: () => unknown): WorkItem {
  const { node, orderKey, parent, edge, spread, input } = item;
  return {
    step,
    orderKey: BigInt(`0x${orderKey}`),
    node,
    get state() {
      return stateOf();
    },
    attempt: 0,
    parentNode: parent,
    edgeIndex: edge,
    ...(spread !== undefined && { spreadIndex: spread, item: input }),
  };
}
