// NewRun: a run that a process is about to start, and its first entry.

import { encode, type EpochMs } from "../base/index.ts";
import {
  budgetOptionsOf,
  CHAIN_START,
  chainAfter,
  markOf,
  type ModelNames,
  type ChildBudget,
  type Entry,
  type QueueSlot,
  type NewRun,
  type OpenSpan,
  type RunRecord,
  type SpanStart,
  type Store,
  type Telemetry,
  type TraceContext,
} from "../kernel/index.ts";
import { CURRENT_FLAGS, startedData, type ChildRequest, type WorkflowBody } from "../workflow/index.ts";
import { versionOf, type Registry } from "./registry.ts";

export interface NewRunOptions {
  readonly id: string;
  /** Encoded; undefined without an input. */
  readonly input: string | undefined;
  readonly tags?: readonly string[];
  readonly priority?: number;
  readonly slot?: QueueSlot | undefined;
  readonly singleton?: string | undefined;
  readonly runtime: string;
  readonly payloadLimit?: number | undefined;
  /** Stored in the first entry, so that the chain values do not reveal the payloads of an encrypted run. */
  readonly salt?: string | undefined;
  /** Only for a fork. */
  readonly forked?: string | undefined;
  readonly seed?: bigint | undefined;
  /** fork.F8 */
  readonly models?: ModelNames | undefined;
  /** Default: the current ones. A fork that shares entries keeps those of its origin. */
  readonly flags?: readonly number[] | undefined;
  /** Default: the definition's. */
  readonly deadlineMs?: number | undefined;
  /** Default: the definition's. `"share"` and `"none"`: of a child, or of a generation that continues. */
  readonly budget?: ChildBudget | undefined;
  /** telemetry.T2 */
  readonly trace?: TraceContext | undefined;
  /** Of the start, which ends when the run exists. */
  readonly span?: OpenSpan | undefined;
}

export type RunBody = Pick<WorkflowBody, "kind" | "name" | "version"> &
  Partial<Pick<WorkflowBody, "budget" | "deadlineMs" | "ports">>;

export function newRun(body: RunBody, options: NewRunOptions): NewRun {
  const { id, input, tags = [], priority = 0, slot, singleton, runtime, payloadLimit, salt, forked, seed } = options;
  const { kind, name, version, ports = {} } = body;
  const deadlineMs = options.deadlineMs ?? body.deadlineMs;
  const budget = options.budget ?? body.budget ?? "share";
  const updates = Object.values(ports).some(({ port }) => port === "update");
  const started = startedData({
    definition: name,
    version,
    flags: options.flags ?? CURRENT_FLAGS,
    budget: typeof budget === "object" ? encode(budgetOptionsOf(budget)) : undefined,
    deadlineMs,
    input,
    forked,
    seed,
    slot,
    singleton,
    payloadLimit,
    salt,
    models: options.models,
    trace: options.span?.trace ?? options.trace,
    updates,
  });
  const run = { id, definition: name, kind, version, priority, tags, started, runtime } as const;
  const { span } = options;
  return {
    ...run,
    ...(slot && { slot }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(budget !== "share" && { budget }),
    ...(span && { span }),
  };
}

/** The entry a store writes when it starts the run. */
export function firstEntryOf({ started }: Pick<NewRun, "started">, { createdAt }: RunRecord): Entry {
  const mark = markOf(chainAfter(CHAIN_START, "RunStarted", "", started));
  return { seq: 1, type: "RunStarted", command: "", data: started, at: createdAt, mark };
}

/** What a process adds to every run it starts. */
export interface NewRunHost {
  readonly registry: Registry;
  /** Describes the process that starts the run; not hashed. */
  readonly runtime: string;
  readonly payloadLimit?: number | undefined;
  readonly newSalt?: (() => string) | undefined;
  readonly telemetry?: Telemetry | undefined;
  /** The clock of spans. */
  readonly store: Pick<Store, "now">;
}

/** The span of a start that this process makes for the run with this id. */
export function startSpan(
  { telemetry, store }: Pick<NewRunHost, "telemetry" | "store">,
  { name, version }: Pick<RunBody, "name" | "version">,
  run: string,
  from: Pick<SpanStart, "parent" | "link" | "isRoot" | "command">,
): OpenSpan | undefined {
  const now = (): EpochMs => store.now();
  return telemetry?.begin({ kind: "start", name, definition: name, version, run, now, ...from });
}

/** The run that a parent's child command starts. `parent`: the trace of the parent's run. */
export function childRun(host: NewRunHost, ask: ChildRequest, parent: TraceContext | undefined): NewRun {
  const { registry, runtime, payloadLimit, newSalt } = host;
  const { childId: id, definition, input, slot, deadlineMs, budget, models } = ask;
  const body = registry.getWorkflow(definition.name, versionOf(definition));
  const span = startSpan(host, body, id, { parent, isRoot: true, command: ask.command });
  const trace = parent;
  return newRun(body, {
    id,
    input,
    slot,
    deadlineMs,
    budget,
    runtime,
    payloadLimit,
    salt: newSalt?.(),
    trace,
    span,
    models,
  });
}

/** The run that `ctx.continueAsNew` starts: its spans are in the trace of the generation before. */
export function nextRun(
  { registry, runtime, payloadLimit, newSalt }: NewRunHost,
  definition: string,
  version: number,
  input: string | undefined,
  trace: TraceContext | undefined,
  models: ModelNames | undefined,
): NewRun {
  const body = registry.getWorkflow(definition, version);
  return newRun(body, { id: "", input, budget: "share", runtime, payloadLimit, salt: newSalt?.(), trace, models });
}
