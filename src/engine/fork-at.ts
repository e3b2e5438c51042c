// Fork of a workflow at one of its commands: the fork shares the entries before the answer of the command (fork.F5).
//
// fork-at.A1. Everything is checked before the write: the command was requested, and can be answered again.

import { inspect } from "node:util";
import { checkOptionNames, encode, RepriseError, type Duration } from "../base/index.ts";
import {
  decodeData,
  isOfType,
  type BudgetOptions,
  type CommandForkOrigin,
  type Entry,
  type ForkEffects,
  type RunRecord,
  type RunStartedData,
} from "../kernel/index.ts";
import { newRun } from "../process/index.ts";
import {
  commandsNamed,
  entryData,
  findForkPlace,
  indexJournal,
  readChainAt,
  readHistory,
  seedAfter,
} from "../workflow/index.ts";
import type { WaitOptions } from "./abort.ts";
import { checkAnswers } from "./fork-answers.ts";
import { checkForkChanges, checkForkVersion, getMade, INPUT, mergeModels } from "./fork-outcome.ts";
import { checkCall, commandOfCall, type ForkCall } from "./fork-call.ts";
import { checkForkStart, forkParts } from "./fork-start.ts";
import type { RunHandleHost } from "./run-handle.ts";

/**
 * Options of `run.fork` for a workflow.
 *
 * @example
 * ```ts
 * import type { ForkAtOptions } from "reprise";
 * // The fourth task of the run is executed again; everything before its answer is shared with the run.
 * export const again: ForkAtOptions = { at: "Task(3)", id: "order-7-again" };
 * // What if it had answered otherwise? Nothing is called.
 * export const declined: ForkAtOptions = { answers: { "Task(3)": { paid: false } }, effects: "recorded" };
 * ```
 */
export interface ForkAtOptions extends WaitOptions {
  /**
   * The command that is answered again, such as `Task(3)`, or the node of a flow; its answer and everything after it belong to the
   * fork. `"input"`: the fork shares the input only. Default: the first of `answers`.
   */
  at?: string;
  /** The same by the name that the code gave the call: `{ name: "think", nth: 2 }` is the second call of think. Of a workflow. */
  call?: ForkCall;
  /** Values that replace recorded answers, by command; they are given when the code of the fork requests the commands. */
  answers?: Readonly<Record<string, unknown>>;
  /**
   * `"live"` (default) executes what the fork requests. `"recorded"` calls nothing: a command gets the answer that this run
   * recorded for the same command, name and input, and one without stops the fork with EFFECT_NOT_RECORDED.
   */
  effects?: ForkEffects;
  /** Models that the fork replaces, by their name in the code, which sees them in `ctx.models`: `{ fast: "strong" }`. */
  models?: Readonly<Record<string, string>>;
  /** The generation to fork; default: the latest. */
  generation?: number;
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

const OPTIONS = [
  "answers",
  "at",
  "budget",
  "call",
  "deadline",
  "effects",
  "generation",
  "id",
  "models",
  "priority",
  "signal",
  "tags",
  "version",
];

export function checkForkAt(given: unknown): ForkAtOptions {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new RepriseError("BAD_OPTIONS", `fork: expected { at }, got ${inspect(given, { depth: 0 })}.`);
  checkOptionNames(given, OPTIONS, "fork");
  const options = given as ForkAtOptions;
  const { at } = options;
  checkForkChanges(options);
  if (options.call !== undefined) {
    checkCall(options.call);
    if (at === undefined) return options;
    throw new RepriseError("BAD_OPTIONS", "fork: expected either at or call, got both. Remove one of them.");
  }
  if (at === undefined && Object.keys(options.answers ?? {}).length > 0) return options;
  if (typeof at !== "string" || at === "")
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: expected a command such as "Task(3)" as at, got ${inspect(at, { depth: 0 })}.`,
    );
  return options;
}

export async function forkAt(host: RunHandleHost, record: RunRecord, options: ForkAtOptions): Promise<RunRecord> {
  const { store, worker } = host;
  const start = checkForkStart(host, record, options);
  const { id } = start;
  const version = checkForkVersion(host, record, options.version);
  const history = await readHistory(store, record.run);
  const place = findPlace(record, history, options);
  const { at, seq } = place;
  const isBefore = (command: string): boolean => placeOf(record, history, command).seq < seq;
  const override = await checkAnswers(host, record, history, { at, isBefore }, options.answers);
  const shared = history.filter((entry) => entry.seq <= seq);
  const chain = await readChainAt(store, record.run, seq);
  const isRecorded = options.effects === "recorded";
  const forked: CommandForkOrigin = {
    ...{ run: record.id, generation: record.generation, at, seq, chain },
    ...(options.answers && { answers: override.answers }),
    ...(isRecorded && { effects: "recorded", head: history.at(-1)?.seq ?? 0 }),
  };
  const recorded = indexJournal(shared);
  const started = recorded.started.data;
  const models = mergeModels(ownStart(history).models, options.models);
  const body = host.registry.findWorkflow(record.definition, version);
  const definition = { kind: record.kind, name: record.definition, version, ports: body?.ports ?? {} };
  const run = newRun(definition, {
    ...forkParts(host, start, definition, started, forked),
    models,
    seed: seedAfter({ id: record.id, generation: record.generation }, indexJournal(history), seq),
  });
  const outcome = await worker.submit({
    write: "fork",
    run,
    origin: { run: record.run, seq, mark: seq < 1 ? undefined : shared.at(-1)?.mark },
    settled: [
      ...recorded.deliveries.flatMap((entry) =>
        isOfType(entry, "PromiseResolved", "PromiseRejected") ? [entryData.arrivalOf(entry.type, entry.data)] : [],
      ),
      ...override.settled,
    ],
  });
  // Without the head of the origin, which may have continued since.
  const textOf = ({ run: of, generation, at: place, seq: from, answers = {}, effects }: CommandForkOrigin): string =>
    encode([of, generation, place, from, answers, effects]);
  const text = textOf(forked);
  const made = getMade(outcome, id, record, {
    text: `${at} of run ${record.id}`,
    options: "answer",
    models,
    isSame: (stored) => "at" in stored && textOf(stored) === text,
  });
  worker.wake();
  if (run.deadlineMs !== undefined) worker.dueAt(made.createdAt + run.deadlineMs);
  return made;
}

/** Before it, the history has the first entries of the runs that this one was forked from. */
function ownStart(history: readonly Entry[]): RunStartedData {
  return decodeData("RunStarted", history.find(({ seq }) => seq === 1)!.data);
}

interface Place {
  readonly at: string;
  readonly seq: number;
}

/** Where the fork begins: at the command that the caller names, or at the first one with another answer. */
function findPlace(
  record: RunRecord,
  history: readonly Entry[],
  { at, call, answers = {} }: Pick<ForkAtOptions, "at" | "answers" | "call">,
): Place {
  if (call !== undefined)
    return placeOf(record, history, commandOfCall(record, commandsNamed(history, call.name), call));
  if (at !== undefined) return placeOf(record, history, at);
  const places = Object.keys(answers).map((command) => placeOf(record, history, command));
  return places.reduce((first, place) => (place.seq < first.seq ? place : first));
}

/** fork-at.A1 */
function placeOf({ id }: RunRecord, history: readonly Entry[], at: string): Place {
  if (at === INPUT) return { at, seq: history[0]!.seq };
  const place = findForkPlace(history, at);
  if (place.status === "found") return { at, seq: place.seq };
  const details = { run: id, at };
  if (place.status === "no_answer")
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: ${at} of run ${id} has no answer that could be another one. Fork at a task, a step, a timer, a promise or a child.`,
      { details },
    );
  const last = place.requested.slice(-SHOWN).join(", ");
  throw new RepriseError(
    "CHECKPOINT_NOT_FOUND",
    `Run ${id} has not requested ${at}; ${last === "" ? "it has requested nothing yet" : `its last commands are ${last}`}.`,
    { details },
  );
}

const SHOWN = 5;
