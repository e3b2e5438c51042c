// FlowStart: how the journal of a flow begins.

import {
  decodeData,
  type ClaimedItem,
  type ModelNames,
  type OpenSpan,
  type RunNumber,
  type RunRecord,
  type SpanKind,
  type SpanStart,
  type Store,
  type TraceContext,
} from "../kernel/index.ts";
import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<"now" | "options">;

export interface FlowStart {
  /** The data of the first entry, once it was read. */
  started: string | undefined;
  /** The head of the journal before the first turn: 1, and one more for each migration of the run before that turn. */
  firstHead: number;
  /** telemetry.T2. Undefined: not decoded yet. */
  trace?: TraceContext | null;
}

/** telemetry.T2. Undefined if the run has none, or its first entry was not read. */
export function traceOf(run: FlowStart): TraceContext | undefined {
  if (run.trace === undefined && run.started !== undefined)
    run.trace = decodeData("RunStarted", run.started).trace ?? null;
  return run.trace ?? undefined;
}

/** fork.F8. The names that children of the flow inherit. A text search is enough for most runs. */
export function modelsOf({ started }: FlowStart): ModelNames | undefined {
  return started?.includes('"models"') === true ? decodeData("RunStarted", started).models : undefined;
}

function flowSpan(
  { options: { telemetry }, now }: UsedParts,
  flow: FlowStart & { readonly record: RunRecord },
  kind: SpanKind,
  name: string,
  what: Partial<SpanStart>,
): OpenSpan | undefined {
  if (telemetry === undefined) return undefined;
  const { id: run, definition, version, generation } = flow.record;
  const parent = traceOf(flow);
  return telemetry.begin({ kind, name, run, definition, version, generation, parent, now, ...what });
}

/** Of an execution of the node's function. */
export function nodeSpan(
  parts: UsedParts,
  flow: FlowStart & { readonly record: RunRecord },
  name: string,
  { item: command, attempt, execution, slot }: ClaimedItem,
): OpenSpan | undefined {
  return flowSpan(parts, flow, "node", name, { command, attempt: attempt + 1, execution, queue: slot?.queue });
}

/** A flow holds no turn while its nodes run: one span of its work, from its start to its end. */
export function endSpan(
  parts: UsedParts,
  flow: FlowStart & { readonly record: RunRecord },
  then: string,
): OpenSpan | undefined {
  if (then === "continue") return undefined;
  const { definition, createdAt: startedAt } = flow.record;
  const span = flowSpan(parts, flow, "invoke", definition, { startedAt });
  span?.finish({ status: then });
  return span;
}

export async function readFlowStart(store: Store, run: RunNumber): Promise<FlowStart> {
  const [first, second] = await store.readJournal(run, 0, 2);
  let next = second;
  let firstHead = 1;
  while (next?.type === "RunMigrated") {
    firstHead = next.seq;
    [next] = await store.readJournal(run, firstHead, 1);
  }
  return { started: first?.data, firstHead };
}
