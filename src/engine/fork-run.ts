// Fork of a graph: a new run from a committed step, optionally with patched state.
//
// fork-run.F1. Everything is checked before the write: the step is committed, the channels exist, the values can be stored.
// fork-run.F2. A process without the graph's code can fork; with it, the graph's own channels check the patch.

import { inspect } from "node:util";
import { checkName, checkOptionNames, checkRunId, decode, encode, RepriseError, type Duration } from "../base/index.ts";
import { forkStep } from "../graph/index.ts";
import {
  checkDeadline,
  decodeData,
  forkOriginText,
  isCancel,
  isDeliveredMessage,
  deliveredAfterRetry,
  snapshotText,
  nodeItemOf,
  stableCommandOf,
  type Arrival,
  type BudgetOptions,
  type ChannelTexts,
  type ForkChanges,
  type ForkEffects,
  type ForkOrigin,
  type RunRecord,
  type Store,
  type DeliveredMessage,
  type StepCommittedData,
} from "../kernel/index.ts";
import { newRun, startSpan } from "../process/index.ts";
import { commandsNamed, entryData, type WorkflowBody } from "../workflow/index.ts";
import type { WaitOptions } from "./abort.ts";
import { checkAnswers } from "./fork-answers.ts";
import { checkForkChanges, checkForkVersion, getMade, isPlain, mergeModels } from "./fork-outcome.ts";
import { checkCall, commandOfCall, type ForkCall } from "./fork-call.ts";
import { forkBudget } from "./fork-start.ts";
import { getCheckpoint, readLineage, type CheckpointAt, type FoundCheckpoint, type Lineage } from "../explain/index.ts";
import { checkAt, readStepAt } from "./run-checkpoints.ts";
import type { RunHandleHost } from "./run-handle.ts";
import { checkStart } from "./start-options.ts";

/** How a fork differs from its origin. */
export interface ForkSettings<State> extends WaitOptions {
  /**
   * Values that replace recorded answers, by command: what `Node(3.0)` returned, or what its code got for
   * `Node(3.0)/Operation(0)`.
   */
  answers?: Readonly<Record<string, unknown>>;
  /**
   * `"live"` (default) executes what the nodes request. `"recorded"` calls nothing: a command gets the answer that the origin
   * recorded for the same command, name and input, and one without stops the fork with EFFECT_NOT_RECORDED.
   */
  effects?: ForkEffects;
  /** Models that the fork replaces, by their name in the code, which sees them in `ctx.models`: `{ fast: "strong" }`. */
  models?: Readonly<Record<string, string>>;
  /** Values that replace those of the checkpoint, by channel; reducers are not applied. */
  patch?: Partial<State>;
  /** The id of the fork; default: a random one. */
  id?: string;
  tags?: readonly string[];
  priority?: number;
  /** Counted from now; default: the deadline of the origin. */
  deadline?: Duration;
  /** What the fork and its children may cost, apart from its origin. Default: the budget that the origin started with. */
  budget?: BudgetOptions;
  /** The version of the definition; default: the version of the origin. */
  version?: number;
}
/** Options of `run.fork`: the step to fork from, and how the fork differs. */
export type ForkOptions<State> = ForkSettings<State> &
  (
    | {
        /** The committed step to fork from; 0 is the input of the run. */
        step: number;
        label?: never;
      }
    | {
        /** The fork starts from the newest step with this label. */
        label: string;
        step?: never;
      }
    | {
        /** The fork starts from the step before the first execution of this node. */
        node: string;
        label?: never;
        step?: never;
      }
    | {
        /** The fork starts from the step before the node that made this call. */
        call: ForkCall;
        label?: never;
        step?: never;
      }
    | {
        /** The fork starts from the step before the first of these commands. */
        answers: Readonly<Record<string, unknown>>;
        label?: never;
        step?: never;
      }
  );

const ENTRIES = 256;
const OPTIONS = [
  "answers",
  "effects",
  "models",
  "step",
  "label",
  "node",
  "call",
  "patch",
  "id",
  "tags",
  "priority",
  "deadline",
  "budget",
  "version",
  "signal",
];

export async function forkStepOf(host: RunHandleHost, record: RunRecord, given: unknown): Promise<RunRecord> {
  const { store, worker } = host;
  const options = checkOptions(given);
  const { tags, priority } = checkStart(options);
  const id = options.id === undefined ? host.newId() : checkRunId(options.id);
  const deadlineMs = options.deadline === undefined ? undefined : checkDeadline(options.deadline, "fork");
  const version = checkForkVersion(host, record, options.version);
  const lineage = await readLineage(store, record);
  const found = await getCheckpoint(store, lineage, await stepOf(store, lineage, options.at));
  const step = await readStepAt(store, found);
  const body = host.registry.findWorkflow(record.definition, version);
  const texts = patchTexts(step.texts, options.patch, record, body, host);
  const delivered = await readDelivered(store, found, step.delivered, step.deliveredUpTo);
  const { data, key, parts } = forkStep(id, step.data as StepCommittedData, texts);
  const { range, row } = found;
  const changes = await readChanges(host, record, found, options);
  const forked: ForkOrigin = { run: range.id, step: row.step, seq: row.seq, chain: row.chain, ...changes.stored };
  const models = mergeModels(lineage.started.models, options.models);
  const definition = { kind: "graph", name: record.definition, version, ports: body?.ports ?? {} } as const;
  const run = newRun(definition, {
    span: startSpan(host, definition, id, { isRoot: true, link: lineage.started.trace }),
    id,
    input: undefined,
    tags,
    priority,
    // The fork waits in the queue of its origin, under the same key.
    slot: lineage.started.line,
    runtime: host.runtime,
    payloadLimit: host.limits?.maxBytes,
    salt: host.newSalt?.(),
    deadlineMs: deadlineMs ?? lineage.started.deadline,
    budget: forkBudget(options, lineage.started),
    forked: forkOriginText({ ...forked, ...(delivered.length > 0 && { delivered }) }),
    seed: lineage.rngSeed,
    models,
  });
  const outcome = await worker.submit({
    write: "fork",
    run,
    origin: { run: range.run, step: row.step, key: row.key },
    step: { data, checkpoint: { step: row.step, key, label: row.label, state: snapshotText(delivered, parts) } },
    settled: [
      ...delivered.flatMap(({ type, data }) => ("promiseId" in data ? [entryData.arrivalOf(type, data)] : [])),
      ...changes.settled,
    ],
  });
  const made = getMade(outcome, id, record, {
    text: `step ${forked.step} of run ${forked.run}`,
    options: "patch",
    models,
    isSame: (stored, second) =>
      !("at" in stored) &&
      stored.run === forked.run &&
      stored.step === forked.step &&
      stored.effects === forked.effects &&
      encode(stored.answers ?? {}) === encode(forked.answers ?? {}) &&
      second?.data === data,
  });
  worker.wake();
  if (run.deadlineMs !== undefined) worker.dueAt(made.createdAt + run.deadlineMs);
  return made;
}

type Checked = ForkSettings<Record<string, unknown>> & { readonly at: CheckpointAt | NamedPlace };

interface NamedPlace extends ForkCall {
  readonly what: "call" | "node";
}

/** A call may be in a step that the run shares with its origin. */
async function stepOf(store: Store, { record, ranges }: Lineage, at: CheckpointAt | NamedPlace): Promise<CheckpointAt> {
  if (typeof at === "number" || "label" in at) return at;
  const commands: string[] = [];
  for (const { run, upTo } of ranges) {
    const named = commandsNamed(await store.readJournal(run, 0), at.name, at.what);
    // The checkpoint that follows the last shared one is the fork's own; the nodes before it ran in the origin.
    commands.push(...named.filter((command) => (nodeItemOf(command)?.step ?? 0) <= upTo + 1));
  }
  return stepBefore(commandOfCall(record, commands, at));
}

function checkOptions(given: unknown): Checked {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new RepriseError("BAD_OPTIONS", `fork: expected { step } or { label }, got ${inspect(given, { depth: 0 })}.`);
  checkOptionNames(given, OPTIONS, "fork");
  const options = given as ForkSettings<Record<string, unknown>> & GivenPlace;
  checkForkChanges(options);
  const at = placeIn(options);
  const { patch } = options;
  if (patch !== undefined && !isPlain(patch))
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: expected an object of values by channel as patch, got ${inspect(patch, { depth: 0 })}.`,
    );
  return { ...options, at };
}

interface GivenPlace {
  readonly step?: unknown;
  readonly label?: unknown;
  readonly node?: unknown;
  readonly call?: unknown;
  readonly answers?: Readonly<Record<string, unknown>>;
}

function placeIn({ step, label, node, call, answers = {} }: GivenPlace): CheckpointAt | NamedPlace {
  const places = [step, label, node, call].filter((place) => place !== undefined);
  if (places.length === 0 && Object.keys(answers).length > 0)
    return Math.min(...Object.keys(answers).map((command) => stepBefore(command)));
  if (places.length !== 1)
    throw new RepriseError(
      "BAD_OPTIONS",
      "fork: expected either a step or a label to fork from, or the name of a node or call. Pass { step }, { label }, { node } or { call }.",
    );
  if (label !== undefined) return { label: checkName(label, "fork: label") };
  if (node !== undefined) return { what: "node", name: checkName(node, "fork: node") };
  return call === undefined ? checkAt(step, "fork") : { what: "call", ...checkCall(call) };
}

/** The step that the item of a command starts from. */
function stepBefore(command: string): number {
  const item = nodeItemOf(command);
  if (item !== undefined && item.step > 0) return item.step - 1;
  throw new RepriseError(
    "BAD_OPTIONS",
    `fork: expected commands of nodes in answers, such as "Node(3.0)" or "Node(3.0)/Operation(0)", got ${inspect(command)}.`,
  );
}

/** fork.F6 */
async function readChanges(
  host: RunHandleHost,
  record: RunRecord,
  { range, row }: FoundCheckpoint,
  { answers, effects }: ForkSettings<unknown>,
): Promise<{ readonly stored: ForkChanges; readonly settled: readonly Arrival[] }> {
  if (answers === undefined && effects !== "recorded") return { stored: {}, settled: [] };
  const history = await host.store.readJournal(range.run, row.seq);
  const requested = new Set(history.map(({ command }) => stableCommandOf(command)));
  const place = { at: `step ${row.step}`, isBefore: (command: string) => stepBefore(command) < row.step };
  const override = await checkAnswers(host, record, history, place, answers);
  for (const command of Object.keys(override.answers))
    if (!requested.has(command))
      throw new RepriseError(
        "CHECKPOINT_NOT_FOUND",
        `Run ${range.id} has not requested ${command} after step ${row.step}.`,
        { details: { run: range.id, command } },
      );
  const stored = {
    ...(answers && { answers: override.answers }),
    ...(effects === "recorded" && { effects, head: history.at(-1)?.seq ?? row.seq }),
  };
  return { stored, settled: override.settled };
}

/** fork-run.F1 */
function patchTexts(
  before: ChannelTexts,
  patch: Readonly<Record<string, unknown>> = {},
  { id, definition }: RunRecord,
  body: WorkflowBody | undefined,
  host: RunHandleHost,
): ChannelTexts {
  const known = new Set([...before.keys(), ...(body?.channels ?? [])]);
  const after = new Map(before);
  for (const [name, value] of Object.entries(patch)) {
    if (!known.has(name))
      throw new RepriseError(
        "BAD_INPUT",
        `fork: ${definition} has no channel ${name}; its channels are: ${[...known].join(", ") || "none"}.`,
        { details: { run: id, channel: name } },
      );
    const problem =
      body?.checkChannel === undefined ? findShapeProblem(before.get(name), value) : body.checkChannel(name, value);
    if (problem !== undefined)
      throw new RepriseError("BAD_INPUT", `fork: the channel ${name} of ${definition} ${problem}.`, {
        details: { run: id, channel: name },
      });
    after.set(name, entryData.encodeNamed(`The patch of ${name}`, value, host.limits) ?? encode(undefined));
  }
  return new Map([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** fork-run.F2. Without the code, a list stays a list and an object an object, because a reducer may rely on it. */
function findShapeProblem(before: string | undefined, value: unknown): string | undefined {
  const shape = (one: unknown): string => (Array.isArray(one) ? "list" : isPlain(one) ? "object" : "value");
  const now = before === undefined ? undefined : decode(before);
  const expected = shape(now);
  if (expected === "value" || shape(value) === expected) return undefined;
  return `holds a${expected === "object" ? "n" : ""} ${expected}, got ${inspect(value, { depth: 0 })}; pass the graph's file to use the channel's own check`;
}

/** The messages the origin had received by this step, which later steps may read; a fork does not inherit a cancellation. */
async function readDelivered(
  store: Store,
  { range, row }: FoundCheckpoint,
  kept: readonly DeliveredMessage[],
  keptUpTo: number,
): Promise<readonly DeliveredMessage[]> {
  let delivered = kept;
  for (let after = keptUpTo; after < row.seq;) {
    const page = await store.readJournal(range.run, after, Math.min(ENTRIES, row.seq - after));
    for (const { type, data } of page) {
      if (isDeliveredMessage(type))
        delivered = [...delivered, { type, data: decodeData(type, data) } as DeliveredMessage];
      if (type === "RunRetried") delivered = deliveredAfterRetry(delivered, decodeData(type, data));
    }
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  return delivered.filter(({ type }) => !isCancel(type));
}
