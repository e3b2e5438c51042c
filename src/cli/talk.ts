// reprise resolve, reject: messages into a run.
//
// Without the code, a name is good when the journal shows that the run asked for it; otherwise a slip of the pen would
// wait in the inbox for ever. With --file, the workflow itself says which names and values it takes.

import { RepriseError } from "../base/index.ts";
import type { Run } from "../engine/index.ts";
import { journalEntryOf, promise, type Definition, type Ports, type RunRecord, type Store } from "../kernel/index.ts";
import { standIn, withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT, paint, paintError, print, printJson, remark } from "./output.ts";
import { readInput } from "./read-input.ts";
import { stepsOf } from "./steps.ts";
import { plain } from "./text.ts";

export interface TalkOptions extends GlobalOptions {
  readonly file?: string;
  readonly inputFile?: string;
}

/** A handle on the run, with its own ports from the file or with those given. */
async function talking(
  id: string,
  options: TalkOptions,
  ports: Ports,
  work: (run: Run<Definition>, record: RunRecord, store: Store) => Promise<number>,
): Promise<number> {
  return reading(options.store, async (store) => {
    const record = await getRun(store, id);
    const definitions =
      options.file === undefined ? [standIn(record.definition, ports)] : await loadDefinitions(options.file);
    return withClient(store, definitions, (engine) => work(engine.run(record.definition, id), record, store));
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
    if (options.file === undefined) await checkAsked(store, record, name);
    await run.resolve(name, value);
    return said("resolve", "resolved", id, name, options);
  });
}

export async function reject(id: string, name: string, message: string, options: TalkOptions): Promise<number> {
  return talking(id, options, { [name]: promise<unknown>() }, async (run, record, store) => {
    if (options.file === undefined) await checkAsked(store, record, name);
    await run.reject(name, new Error(message));
    return said("reject", "rejected", id, name, options);
  });
}

async function said(action: string, past: string, id: string, name: string, options: TalkOptions): Promise<number> {
  if (options.json) await printJson({ action, id, name, checked: options.file !== undefined });
  else {
    await print(`${paint("green", past)} ${paint("bold", plain(name))} of ${plain(id)}`);
    if (options.file === undefined && action !== "reject")
      remark(paintError("dim", "the value was sent as given; with --file the workflow's schema checks it first"));
  }
  return EXIT.ok;
}

async function checkAsked(store: Store, record: RunRecord, name: string): Promise<void> {
  const entries = await store.readJournal(record.run, 0);
  const promises = stepsOf(entries.map(journalEntryOf)).filter(({ kind }) => kind === "promise");
  const asked = new Set(promises.map((step) => step.name));
  if (asked.has(name)) return;
  const so = asked.size === 0 ? "it has asked for none" : `it has asked for: ${[...asked].map(plain).join(", ")}`;
  throw new RepriseError(
    "UNKNOWN_PORT",
    `Run ${record.id} has asked for no promise called ${name} so far; ${so}. If it will ask later, name its code with --file, so that the name can be checked.`,
    { details: { run: record.id, name, asked: [...asked] } },
  );
}
