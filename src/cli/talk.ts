// reprise signal, resolve, reject, query, update, stream: messages into a run, and what it says while it goes on.
//
// Without the code, a name is good when the journal shows that the run asked for it; otherwise a slip of the pen would
// wait in the inbox for ever. With --file, the workflow itself says which names and values it takes.

import { RepriseError, systemTimers, toMs, type Duration } from "../base/index.ts";
import type { Run } from "../engine/index.ts";
import {
  hasEnded,
  journalEntryOf,
  promise,
  signal as signalPort,
  stream as streamPort,
  update as updatePort,
  type Definition,
  type EntryType,
  type Ports,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { standIn, withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark, valueText } from "./output.ts";
import { shown } from "./payload-module.ts";
import { readInput } from "./read-input.ts";
import { jsonOf } from "./shown-run.ts";
import { fieldsOf } from "./steps.ts";
import { plain, showValue } from "./text.ts";

export interface TalkOptions extends GlobalOptions {
  readonly file?: string;
  readonly inputFile?: string;
  /** The workflow of a run that may not exist yet. */
  readonly beforeStart?: string;
}

export interface SignalOptions extends TalkOptions {
  readonly dedupId?: string;
}

export interface QueryOptions extends TalkOptions {
  readonly file: string;
}

export interface UpdateOptions extends TalkOptions {
  readonly dedupId?: string;
  readonly timeout?: Duration;
}

export interface StreamOptions extends GlobalOptions {
  readonly file?: string;
  readonly after: number;
}

type Kind = "promise" | "signal" | "update";

/** How long an answer may take before somebody is told what it may wait for. */
const PATIENCE_MS = 2_000;

/** A handle on the run, with the ports of its file or, where there is none, with those given. */
async function talking(
  id: string,
  options: TalkOptions,
  ports: Ports,
  work: (run: Run<Definition>, record: RunRecord | undefined, store: Store) => Promise<number>,
): Promise<number> {
  if (options.beforeStart !== undefined && options.file === undefined)
    throw new RepriseError("USAGE", "--before-start needs --file: only its code can say what such a run will take.");
  return reading(options.store, async (store) => {
    const record = options.beforeStart === undefined ? await getRun(store, id) : await store.findRun(id);
    const definition = record?.definition ?? options.beforeStart ?? "";
    const definitions =
      options.file === undefined ? [standIn(definition, ports, record?.version)] : await loadDefinitions(options.file);
    return withClient(store, definitions, (engine) => work(engine.run(definition, id), record, store));
  });
}

export async function signal(
  id: string,
  name: string,
  valueText: string | undefined,
  options: SignalOptions,
): Promise<number> {
  const value = await readInput(valueText, options.inputFile);
  return talking(id, options, { [name]: signalPort<unknown>() }, async (run, record, store) => {
    await checkAsked(store, record, "signal", name, options);
    await run.signal(name, value, {
      ...(options.dedupId !== undefined && { dedupId: options.dedupId }),
      ...beforeStartOf(options),
    });
    return said("signal", "sent", id, name, options);
  });
}

export async function resolve(
  id: string,
  name: string,
  valueText: string | undefined,
  options: TalkOptions,
): Promise<number> {
  const value = await readInput(valueText, options.inputFile);
  return talking(id, options, { [name]: promise<unknown>() }, async (run, record, store) => {
    await checkAsked(store, record, "promise", name, options);
    await run.resolve(name, value, beforeStartOf(options));
    return said("resolve", "resolved", id, name, options);
  });
}

export async function reject(id: string, name: string, message: string, options: TalkOptions): Promise<number> {
  return talking(id, options, { [name]: promise<unknown>() }, async (run, record, store) => {
    await checkAsked(store, record, "promise", name, options);
    await run.reject(name, new Error(message), beforeStartOf(options));
    return said("reject", "rejected", id, name, options);
  });
}

/** Runs the run's code against its journal, so it needs the code; nothing is written. */
export async function query(
  id: string,
  name: string,
  argsText: string | undefined,
  options: QueryOptions,
): Promise<number> {
  const args = await readInput(argsText, options.inputFile);
  return talking(id, options, {}, (run) => answered("query", id, name, run.query(name, args), options));
}

/** Waits for the answer of the run's code, which a worker must run. */
export async function update(
  id: string,
  name: string,
  argsText: string | undefined,
  options: UpdateOptions,
): Promise<number> {
  const args = await readInput(argsText, options.inputFile);
  const timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, "--timeout");
  return talking(id, options, { [name]: updatePort<unknown, unknown>() }, async (run, record, store) => {
    await checkAsked(store, record, "update", name, options);
    const { dedupId } = options;
    const answer = run.update(name, args, dedupId === undefined ? {} : { dedupId });
    return answered("update", id, name, inTime(answer, timeoutMs, id, name), options);
  });
}

/** What the run's code throws is its answer too. */
async function answered(
  action: "query" | "update",
  id: string,
  name: string,
  answer: Promise<unknown>,
  options: TalkOptions,
): Promise<number> {
  const place = { action, id, name };
  try {
    const result: unknown = shown(await answer);
    if (options.json) await printJson({ ...place, result: jsonOf(result), error: null });
    else if (result !== undefined) await print(valueText(result));
    return EXIT.ok;
  } catch (error) {
    if (error instanceof RepriseError || !(error instanceof Error)) throw error;
    const { name: kind, message } = shown(error);
    if (options.json) await printJson({ ...place, result: null, error: { name: kind, message } });
    else remark(`${paintError(["red", "bold"], `${action} ${plain(name)} failed:`)} ${plain(`${kind}: ${message}`)}`);
    return EXIT.problem;
  }
}

/** Nobody may be there to answer: that is said after a while, and ends the wait where a time was given. */
async function inTime(
  answer: Promise<unknown>,
  timeoutMs: number | undefined,
  id: string,
  name: string,
): Promise<unknown> {
  const cancels: (() => void)[] = [];
  const after = (ms: number, work: () => void): void => void cancels.push(systemTimers.set(ms, work));
  try {
    return await new Promise((settle, refuse) => {
      answer.then(settle, refuse);
      after(PATIENCE_MS, () =>
        remark(paintError("dim", `no answer yet: a worker that has the workflow of ${plain(id)} must be running`)),
      );
      if (timeoutMs === undefined) return;
      after(timeoutMs, () =>
        refuse(
          new RepriseError(
            "RESULT_TIMEOUT",
            `Run ${id} has not answered the update ${name} within ${timeoutMs} ms. It was sent and stays; with --dedup-id it can be asked for again.`,
          ),
        ),
      );
    });
  } finally {
    for (const cancel of cancels) cancel();
  }
}

/** Chunks as they come, until the run has ended. */
export async function stream(id: string, name: string, options: StreamOptions): Promise<number> {
  return talking(id, options, { [name]: streamPort<unknown>() }, async (run) => {
    for await (const { offset, value } of run.stream(name, { after: options.after })) {
      const visible: unknown = shown(value);
      if (options.json) await printJson({ offset, value: jsonOf(visible) });
      else await print(`${paint("dim", String(offset).padStart(6))}  ${showValue(visible)}`);
    }
    return EXIT.ok;
  });
}

function beforeStartOf({ beforeStart }: TalkOptions): { beforeStart?: true } {
  return beforeStart === undefined ? {} : { beforeStart: true };
}

async function said(action: string, past: string, id: string, name: string, options: TalkOptions): Promise<number> {
  if (options.json) await printJson({ action, id, name, checked: options.file !== undefined });
  else {
    await print(
      `${paint("green", past)} ${paint("bold", plain(name))} ${action === "signal" ? "to" : "of"} ${plain(id)}`,
    );
    if (options.file === undefined && action !== "reject")
      remark(paintError("dim", "the value was sent as given; with --file the workflow's schema checks it first"));
  }
  return EXIT.ok;
}

async function checkAsked(
  store: Store,
  record: RunRecord | undefined,
  kind: Kind,
  name: string,
  options: TalkOptions,
): Promise<void> {
  // A run that has ended refuses every message, and says so itself.
  if (options.file !== undefined || record === undefined || hasEnded(record.status)) return;
  const asked = await namesAsked(store, record, kind);
  if (asked.has(name)) return;
  const so = asked.size === 0 ? "it has asked for none" : `it has asked for: ${[...asked].map(plain).join(", ")}`;
  throw new RepriseError(
    "UNKNOWN_PORT",
    `Run ${record.id} has asked for no ${kind} called ${name} so far; ${so}. If it will ask later, name its code with --file, so that the name can be checked.`,
    { details: { run: record.id, name, asked: [...asked] } },
  );
}

const SHOWS_NAMES: ReadonlySet<EntryType> = new Set<EntryType>(["PromiseCreated", "SignalReceived", "UpdateRequested"]);

/** The names a run's journal shows: what it waits or waited for, and signals and updates that came. */
export async function namesAsked(store: Store, record: RunRecord, kind: Kind): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  const add = (name: unknown): void => void (typeof name === "string" && names.add(name));
  for (const entry of await store.readJournal(record.run, 0)) {
    if (!SHOWS_NAMES.has(entry.type)) continue;
    const fields = fieldsOf(journalEntryOf(entry));
    const receives = fields["receives"];
    if (kind === "promise") {
      if (entry.type === "PromiseCreated" && receives === undefined) add(fields["promiseId"]);
    } else if (kind === "update") {
      if (entry.type === "UpdateRequested") add(fields["name"]);
    } else if (entry.type === "SignalReceived") add(fields["name"]);
    else if (Array.isArray(receives)) receives.forEach(add);
  }
  return names;
}
