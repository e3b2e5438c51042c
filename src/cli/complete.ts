// Complete: prints the candidates for the last word of a command line, one per line, with a tab before the description.
// Shells call it on every Tab, so it is fast, prints no errors and changes nothing.

import type { Argument, Command, Option } from "commander";
import { ERROR_CATALOGUE } from "../base/index.ts";
import { hasEnded, RUN_STATUSES, type RunRecord, type Store, isTerminal, stableCommandOf } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { mirrorNames, splitName } from "./mirrors.ts";
import { readHistory } from "../workflow/index.ts";
import { withStoreToRead } from "./open-store.ts";
import { print } from "./output.ts";
import { createProgram } from "./program.ts";
import { CONTROL_ACTIONS, type ControlAction } from "./control.ts";
import { unquotedCommand } from "./fork.ts";
import { readPortNames } from "./messages.ts";
import { isReading } from "./resolve-runs.ts";

interface Candidate {
  readonly value: string;
  readonly about: string;
}

const MAX_RUNS = 300;
const MAX_SCHEDULES = 300;
const SNAPSHOT_DIGITS = 12;

export async function complete(words: readonly string[]): Promise<number> {
  const typed = words.at(-1) ?? "";
  for (const { value, about } of await candidatesFor(words.slice(0, -1), typed))
    if (value.startsWith(typed) && needsNoQuotes(value)) await print(`${value}\t${about}`);
  return 0;
}

/** Candidates that need quotes are not offered. */
function needsNoQuotes(value: string): boolean {
  return /^[\w.:@%+,=/-]+$/.test(value);
}

/** The command, arguments and options before the cursor. */
interface CompletionContext {
  readonly command: Command;
  readonly given: readonly string[];
  /** The option whose value comes next. */
  readonly option: Option | undefined;
  readonly store: string;
  readonly home: { readonly home?: string };
  /** The word at the cursor. */
  readonly typed: string;
}

async function candidatesFor(before: readonly string[], typed: string): Promise<readonly Candidate[]> {
  const place = contextOf(before, typed);
  if (place.option !== undefined) return optionValues(place.option, typed, place);
  if (typed.startsWith("-")) return optionsOf(place.command);
  const children = place.command.createHelp().visibleCommands(place.command);
  if (children.length > 0) return children.map((child) => ({ value: child.name(), about: child.description() }));
  const argument = place.command.registeredArguments[place.given.length] ?? variadicOf(place.command);
  return argument === undefined ? [] : argumentValues(argument, place);
}

function contextOf(before: readonly string[], typed: string): CompletionContext {
  let command = createProgram();
  let store = String(command.opts()["store"]);
  let home: string | undefined;
  let given: string[] = [];
  let option: Option | undefined;
  for (const word of before) {
    if (option !== undefined) {
      if (option.long === "--store") store = word;
      if (option.long === "--home") home = word;
      option = undefined;
    } else if (word.startsWith("-")) {
      const [name, value] = word.split("=", 2);
      const found = allOptions(command).find(({ long, short }) => long === name || short === name);
      if (found?.long === "--store" && value !== undefined) store = value;
      if (found !== undefined && (found.required || found.optional) && value === undefined) option = found;
    } else {
      const child = command.commands.find((one) => one.name() === word);
      if (child === undefined) given.push(word);
      else [command, given] = [child, []];
    }
  }
  return { command, given, option, store, home: home === undefined ? {} : { home }, typed };
}

function allOptions(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent === null ? [] : allOptions(command.parent))];
}

function variadicOf(command: Command): Argument | undefined {
  const last = command.registeredArguments.at(-1);
  return last?.variadic === true ? last : undefined;
}

function optionsOf(command: Command): Candidate[] {
  return allOptions(command).flatMap(({ long, description, hidden }) =>
    long === undefined || hidden ? [] : [{ value: long, about: description }],
  );
}

/** An empty list makes the shell complete file names. */
async function optionValues(
  { long, argChoices }: Option,
  typed: string,
  place: CompletionContext,
): Promise<readonly Candidate[]> {
  if (argChoices !== undefined) return argChoices.map((value) => ({ value, about: "" }));
  switch (long) {
    case "--status": {
      const earlier = typed.slice(0, typed.lastIndexOf(",") + 1);
      return RUN_STATUSES.map((status) => ({ value: `${earlier}${status}`, about: "" }));
    }
    case "--definition":
      return newestRuns(place, (runs) => distinct(runs.map(({ definition }) => definition)));
    case "--run":
      return runCandidates(place, ({ kind }) => kind !== "workflow" || place.command.name() !== "graph");
    case "--tag": {
      const earlier = typed.slice(0, typed.lastIndexOf(",") + 1);
      return newestRuns(place, (runs) => distinct(runs.flatMap(({ tags }) => tags).map((tag) => `${earlier}${tag}`)));
    }
    case "--at":
      return readCandidates(place, (store) => commandCandidates(store, place.given[0] ?? ""));
    case "--answer":
      return readCandidates(place, async (store) =>
        (await commandCandidates(store, place.given[0] ?? "")).map(({ value, about }) => ({
          value: `${value}=`,
          about,
        })),
      );
    case "--error-code":
      return newestRuns(place, (runs) => distinct(runs.flatMap(({ errorCode }) => errorCode ?? [])));
    case "--parent":
      return newestRuns(place, (runs) =>
        runs.map(({ id, definition, status }) => ({ value: id, about: `${definition}, ${status}` })),
      );
    default:
      return [];
  }
}

async function argumentValues(argument: Argument, place: CompletionContext): Promise<readonly Candidate[]> {
  if (argument.argChoices !== undefined) return argument.argChoices.map((value) => ({ value, about: "" }));
  switch (argument.name()) {
    case "id":
    case "other":
    case "ids":
    case "target":
    case "targets":
      return runCandidates(place, (run) => isAcceptedBy(place.command, run));
    case "peer":
      return peerCandidates(place);
    case "snapshot":
    case "later":
      return snapshotCandidates(place);
    case "mirror":
      return mirrorCandidates(place);
    case "source":
      return sourceCandidates(place);
    case "workflow":
      return newestRuns(place, (runs) => distinct(runs.map(({ definition }) => definition)));
    case "graph":
      return newestRuns(place, (runs) =>
        distinct(runs.filter(({ kind }) => kind !== "workflow").map(({ definition }) => definition)),
      );
    case "code":
      return Object.entries(ERROR_CATALOGUE).map(([value, { summary }]) => ({ value, about: summary }));
    case "promise":
    case "signal":
    case "update": {
      const kind = argument.name() as "promise" | "signal" | "update";
      return readCandidates(place, (store) => portCandidates(store, place.given[0] ?? "", kind));
    }
    case "queue":
      return readCandidates(place, async (store) => distinct((await store.listQueues()).map(({ name }) => name)));
    case "schedule":
      return readCandidates(place, async (store) =>
        (await store.listSchedules("", MAX_SCHEDULES)).map(({ name, definition }) => ({
          value: name,
          about: definition,
        })),
      );
    default:
      return [];
  }
}

/** Whether the command can do something with the run. */
function isAcceptedBy(command: Command, { status, kind, parent }: RunRecord): boolean {
  switch (command.name()) {
    case "checkpoints":
      return kind === "graph";
    case "fork":
    case "diff":
      return true;
    case "signal":
    case "update":
    case "resolve":
    case "reject":
      return !hasEnded(status);
    case "delete":
      return hasEnded(status) && parent === undefined;
    default: {
      const control = Object.values<ControlAction>(CONTROL_ACTIONS).find(({ verb }) => verb === command.name());
      return control === undefined || control.statuses.includes(status);
    }
  }
}

/** The commands of a run that have an answer. */
async function commandCandidates(store: Store, id: string): Promise<Candidate[]> {
  const record = await store.findRun(id);
  if (record === undefined) return [];
  const history =
    record.kind === "workflow" ? await readHistory(store, record.run) : await store.readJournal(record.run, 0);
  const answered = history.filter(({ type, command }) => command !== "" && isTerminal(type));
  return distinct(answered.map(({ command }) => unquotedCommand(stableCommandOf(command))));
}

async function portCandidates(store: Store, id: string, kind: "promise" | "signal" | "update"): Promise<Candidate[]> {
  const record = await store.findRun(id);
  return record === undefined ? [] : distinct([...(await readPortNames(store, record, kind))]);
}

/** Ids of the store, and names of mirrors; behind the `/` of a mirror, its runs. */
async function runCandidates(
  place: CompletionContext,
  accepts: (run: RunRecord) => boolean,
): Promise<readonly Candidate[]> {
  const candidatesIn = (prefix: string) => (runs: readonly RunRecord[]) =>
    runs.filter(accepts).map(({ id, definition, status }) => ({
      value: `${prefix}${id}`,
      about: `${definition}, ${status}`,
    }));
  const named = splitName(optionsOfHome(place), place.typed);
  const own = await newestRuns(place, candidatesIn(""));
  if (!isReading(place.command)) return own;
  if (named === undefined) return [...own, ...mirrorCandidates(place)];
  return [...own, ...(await newestRuns({ ...place, store: named.url }, candidatesIn(`${named.mirror}/`)))];
}

/** A peer comes first: `pull` of a name that both have asks the peer. */
async function sourceCandidates(place: CompletionContext): Promise<Candidate[]> {
  const peers = await peerCandidates(place);
  const mirrors = mirrorNames(optionsOfHome(place)).filter((name) => !peers.some(({ value }) => value === name));
  return [...peers, ...mirrors.map((name) => ({ value: name, about: "mirror" }))];
}

function mirrorCandidates(place: CompletionContext): Candidate[] {
  return mirrorNames(optionsOfHome(place)).map((name) => ({ value: `${name}/`, about: "mirror" }));
}

/** Loaded here: most completions need neither. */
async function peerCandidates(place: CompletionContext): Promise<Candidate[]> {
  const { readSettings } = await import("../federation/index.ts");
  try {
    const peers = Object.entries(readSettings(homeOf(place.home)).peers ?? {});
    return peers.map(([name, { url }]) => ({ value: name, about: url ?? "peer" }));
  } catch {
    return [];
  }
}

async function snapshotCandidates(place: CompletionContext): Promise<Candidate[]> {
  const { listSnapshotsIn } = await import("../federation/index.ts");
  return listSnapshotsIn(homeOf(place.home)).map(({ id, at }) => ({
    value: id.slice(0, SNAPSHOT_DIGITS),
    about: at === undefined ? "" : new Date(at).toISOString(),
  }));
}

function optionsOfHome({ store, home }: CompletionContext): GlobalOptions {
  return { store, json: false, ...home };
}

function newestRuns(
  place: CompletionContext,
  choose: (runs: readonly RunRecord[]) => Candidate[],
): Promise<readonly Candidate[]> {
  return readCandidates(place, async (store) => choose(await store.listRuns({ limit: MAX_RUNS })));
}

/** Returns nothing if the store cannot be read: an error message would disturb the prompt. */
async function readCandidates(
  place: CompletionContext,
  work: (store: Store) => Promise<readonly Candidate[]>,
): Promise<readonly Candidate[]> {
  try {
    return await withStoreToRead(place.store, work);
  } catch {
    return [];
  }
}

function distinct(values: readonly string[]): Candidate[] {
  return [...new Set(values)].map((value) => ({ value, about: "" }));
}
