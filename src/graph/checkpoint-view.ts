// Checkpoint view: the public view of a checkpoint, with the nine fields of seed 000, from a step's entry and the state after it.
//
// State and frontier are decoded on first access: a thousand checkpoints of a large state share the texts of unchanged
// channels.

import { decode } from "../base/index.ts";
import type { ChannelTexts, FrontierItemData, StepCommittedData } from "../kernel/index.ts";
import type { RecordedIO } from "./recorded-io.ts";

/** One activation of a node, ready to run (seed 000). */
export interface WorkItem<State = unknown> {
  /** The step that runs it. */
  readonly step: number;
  /** Its place among the items of its step: a 64-bit hash of the path that led to it. */
  readonly orderKey: bigint;
  readonly node: string;
  /** The state that its node reads. */
  readonly state: State;
  /** From 0, as seed 000 has it; `ctx.attempt` counts from 1. */
  readonly attempt: number;
  /** The node whose edge led to it; empty for START. */
  readonly parentNode: string;
  /** Which of that node's edges, from 0 in written order. */
  readonly edgeIndex: number;
  /** For an item of a spread: its index, and the item. */
  readonly spreadIndex?: number;
  readonly item?: unknown;
}

/**
 * The state and the next nodes of a graph after one of its steps, as `run.checkpoint` and `run.checkpoints` return it.
 *
 * @example
 * ```ts
 * import type { Checkpoint } from "reprise";
 * const next = (checkpoint: Checkpoint): string[] => checkpoint.frontier.map(({ node }) => node);
 * ```
 */
export interface Checkpoint<State = unknown> {
  /** The run that committed the step. For a step that a fork inherits, the run it was forked from. */
  readonly runId: string;
  /** 0 is the input. */
  readonly step: number;
  readonly state: State;
  /** The items that run next, in written order; empty at the end. */
  readonly frontier: readonly WorkItem<State>[];
  /** The random seed of the run: 64 bits, the same in every replay and every fork. */
  readonly rngSeed: bigint;
  /** The recorded calls of the step's nodes; only if they were read. */
  readonly recordedIO?: readonly RecordedIO[];
  /** `sha256:` and 64 hex digits; unique in the store (seed 003). */
  readonly idempotencyKey: string;
  readonly timestamp: Date;
  /** The name that `ctx.label` gave it. */
  readonly label?: string;
}

export interface CheckpointParts {
  readonly runId: string;
  readonly rngSeed: bigint;
  readonly data: StepCommittedData;
  readonly at: number;
  readonly texts: ChannelTexts;
  readonly recordedIO?: readonly RecordedIO[];
}

export function createCheckpoint({ runId, rngSeed, data, at, texts, recordedIO }: CheckpointParts): Checkpoint {
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

/** Decodes the values of a state. */
export function stateValue(texts: ChannelTexts): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Array.from(texts, ([name, text]) => [name, decode(text)]));
}

function workItemOf(item: FrontierItemData, step: number, stateOf: () => unknown): WorkItem {
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
