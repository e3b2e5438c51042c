// Messages: the work of signal, resolve, reject, query, update and stream.
//
// Without --file, a name must appear in the run's journal: a message with a mistyped name would stay in the inbox forever.
// With --file, the workflow validates the name and the value.

import { RepriseError, systemTimers, toMs, type Duration } from "../base/index.ts";
import type { Run, SettleOptions as EngineSettleOptions, StreamReset } from "../engine/index.ts";
import {
  hasEnded,
  journalEntryOf,
  promise,
  promiseNameOf,
  signal as signalPort,
  stream as streamPort,
  update as updatePort,
  type Definition,
  type EntryType,
  type Ports,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import { CommandError } from "./command-error.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, withStore, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paint, paintError, print, printJson, remark, valueText } from "./output.ts";
import { redacted } from "./payload-module.ts";
import { readInput } from "./read-input.ts";
import { jsonOf } from "./run-format.ts";
import { typedEntryOf, type TypedEntry } from "../explain/index.ts";
import { plain, showValue } from "./text.ts";

export interface MessageOptions extends GlobalOptions {
  readonly file?: string;
  readonly inputFile?: string;
  /** The workflow of a run that does not have to exist yet. */
  readonly beforeStart?: string;
}

export interface SettleOptions extends MessageOptions {
  readonly key?: string;
  readonly by?: string;
  readonly reason?: string;
}

export interface SignalOptions extends MessageOptions {
  readonly dedupId?: string;
}

export interface QueryOptions extends MessageOptions {
  readonly file: string;
}

export interface UpdateOptions extends MessageOptions {
  readonly dedupId?: string;
  readonly timeout?: Duration;
}

export interface StreamOptions extends GlobalOptions {
  readonly file?: string;
  readonly after: number;
}

const MESSAGE_KINDS = ["promise", "signal", "update"] as const;
type MessageKind = (typeof MESSAGE_KINDS)[number];

/** After this time without an answer, a hint is printed. */
const HINT_AFTER_MS = 2_000;

/** Calls `work` with a handle on the run. Its ports come from --file or, without it, from `ports`. */
async function withRun(
  id: string,
  options: MessageOptions,
  ports: Ports,
  work: (run: Run<Definition>, record: RunRecord | undefined, store: Store) => Promise<number>,
  opened: typeof withStore = withStore,
): Promise<number> {
  if (options.beforeStart !== undefined && options.file === undefined)
    throw new RepriseError(
      "USAGE",
      "--before-start needs --file <file>: only the workflow can validate a message to a run that has not started.",
    );
  return opened(options.store, async (store) => {
    const record = options.beforeStart === undefined ? await getRun(store, id) : await store.findRun(id);
    const definition = record?.definition ?? options.beforeStart ?? "";
    const definitions =
      options.file === undefined
        ? [placeholderDefinition(definition, ports, record?.version)]
        : await loadDefinitions(options.file);
    return withClient(store, definitions, (engine) => work(engine.get(definition, id), record, store)).catch(
      (error: unknown) => {
        throw withPortCommand(error, id, options);
      },
    );
  });
}

/** The engine names the method for a port of another kind; the command line names the command, which has the same name. */
function withPortCommand(error: unknown, id: string, { file }: MessageOptions): unknown {
  if (!(error instanceof RepriseError) || error.code !== "UNKNOWN_PORT" || error instanceof CommandError) return error;
  const { details = {}, message } = error;
  const { name, method } = details;
  if (typeof name !== "string" || typeof method !== "string") return error;
  const withFile = file === undefined ? "" : ` --file ${shellWord(file)}`;
  return new CommandError(
    "UNKNOWN_PORT",
    message.replace(`use run.${method}`, `use \`reprise ${method}\``),
    `reprise ${method} ${shellWord(id)} ${shellWord(name)}${argumentOf(method)}${withFile}`,
    { details },
  );
}

function argumentOf(method: string): string {
  return method === "stream" ? "" : " '<value as JSON>'";
}

export async function signal(
  id: string,
  name: string,
  valueText: string | undefined,
  options: SignalOptions,
): Promise<number> {
  const value = await readInput(valueText, options.inputFile);
  return withRun(id, options, { [name]: signalPort<unknown>() }, async (run, record, store) => {
    await checkPortName(store, record, "signal", name, options);
    await run.signal(name, value, {
      ...(options.dedupId !== undefined && { dedupId: options.dedupId }),
      ...beforeStartOf(options),
    });
    return printSent("signal", "sent", id, name, options);
  });
}

export async function resolve(
  id: string,
  name: string,
  valueText: string | undefined,
  options: SettleOptions,
): Promise<number> {
  const value = await readInput(valueText, options.inputFile);
  return withRun(id, options, { [name]: promise<unknown>() }, async (run, record, store) => {
    await checkPortName(store, record, "promise", name, options);
    await run.resolve(name, value, settleOptionsOf(options));
    return printSent("resolve", "resolved", id, name, options, options.key);
  });
}

export async function reject(id: string, name: string, message: string, options: SettleOptions): Promise<number> {
  return withRun(id, options, { [name]: promise<unknown>() }, async (run, record, store) => {
    await checkPortName(store, record, "promise", name, options);
    await run.reject(name, new Error(message), settleOptionsOf(options));
    return printSent("reject", "rejected", id, name, options, options.key);
  });
}

function settleOptionsOf({ key, by, reason, ...options }: SettleOptions): EngineSettleOptions {
  return {
    ...beforeStartOf(options),
    ...(key !== undefined && { key }),
    ...(by !== undefined && { by }),
    ...(reason !== undefined && { reason }),
  };
}

/** Replays the run's code, so it needs --file. */
export async function query(
  id: string,
  name: string,
  argsText: string | undefined,
  options: QueryOptions,
): Promise<number> {
  const args = await readInput(argsText, options.inputFile);
  const answer = (run: Run<Definition>) => printAnswer("query", id, name, run.query(name, args), options);
  return withRun(id, options, {}, answer, withStoreToRead);
}

/** Waits for the answer of the run's code, which runs on a worker. */
export async function update(
  id: string,
  name: string,
  argsText: string | undefined,
  options: UpdateOptions,
): Promise<number> {
  const args = await readInput(argsText, options.inputFile);
  const timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, "--timeout");
  return withRun(id, options, { [name]: updatePort<unknown, unknown>() }, async (run, record, store) => {
    await checkPortName(store, record, "update", name, options);
    const { dedupId } = options;
    const answer = run.update(name, args, dedupId === undefined ? {} : { dedupId });
    return printAnswer("update", id, name, withTimeout(answer, timeoutMs, id, name), options);
  });
}

/** An error that the run's code throws is an answer too. */
async function printAnswer(
  action: "query" | "update",
  id: string,
  name: string,
  answer: Promise<unknown>,
  options: MessageOptions,
): Promise<number> {
  const place = { action, id, name };
  try {
    const result: unknown = redacted(await answer);
    if (options.json) await printJson({ ...place, result: jsonOf(result), error: null });
    else if (result !== undefined) await print(valueText(result));
    return EXIT.ok;
  } catch (error) {
    if (error instanceof RepriseError || !(error instanceof Error)) throw error;
    const { name: kind, message } = redacted(error);
    if (options.json) await printJson({ ...place, result: null, error: { name: kind, message } });
    else remark(`${paintError(["red", "bold"], `${action} ${plain(name)} failed:`)} ${plain(`${kind}: ${message}`)}`);
    return EXIT.problem;
  }
}

/** Prints a hint if no worker answers, and gives up after the timeout. */
async function withTimeout(
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
      after(HINT_AFTER_MS, () =>
        remark(
          paintError(
            "dim",
            withStoreOption(
              `no answer yet; a worker with the workflow of ${plain(id)} must be running: reprise worker <file>`,
            ),
          ),
        ),
      );
      if (timeoutMs === undefined) return;
      after(timeoutMs, () =>
        refuse(
          new RepriseError(
            "RESULT_TIMEOUT",
            `Run ${id} has not answered the update ${name} within ${timeoutMs} ms. The update was delivered and will be processed. To wait again, send it with the same --dedup-id.`,
          ),
        ),
      );
    });
  } finally {
    for (const cancel of cancels) cancel();
  }
}

/** Prints chunks as they arrive, until the run has ended. */
export async function stream(id: string, name: string, options: StreamOptions): Promise<number> {
  const follow = async (run: Run<Definition>): Promise<number> => {
    for await (const { offset, value, step, execution, reset } of run.stream(name, { after: options.after })) {
      const at = paint("dim", String(offset).padStart(6));
      if (reset !== undefined) {
        if (options.json) await printJson({ offset, reset });
        else await print(`${at}  ${paint("yellow", resetText(reset))}`);
        continue;
      }
      const visible: unknown = redacted(value);
      if (options.json)
        await printJson({ offset, value: jsonOf(visible), ...(step !== undefined && { step, execution }) });
      else await print(`${at}  ${showValue(visible)}`);
    }
    return EXIT.ok;
  };
  return withRun(id, options, { [name]: streamPort<unknown>() }, follow, withStoreToRead);
}

function resetText({ step, execution }: StreamReset["reset"]): string {
  return `reset: ${plain(step)} is repeated (execution ${execution}); its values above are void`;
}

function beforeStartOf({ beforeStart }: MessageOptions): { beforeStart?: true } {
  return beforeStart === undefined ? {} : { beforeStart: true };
}

async function printSent(
  action: string,
  past: string,
  id: string,
  name: string,
  options: MessageOptions,
  key?: string,
): Promise<number> {
  if (options.json)
    await printJson({
      action,
      id,
      name,
      ...(action !== "signal" && { key: key ?? null }),
      checked: options.file !== undefined,
    });
  else {
    const shown = plain(key === undefined ? name : `${name}[${key}]`);
    await print(`${paint("green", past)} ${paint("bold", shown)} ${action === "signal" ? "to" : "of"} ${plain(id)}`);
    if (options.file === undefined && action !== "reject")
      remark(
        paintError("dim", "the value was not validated; add --file <file> to validate it with the workflow's schema"),
      );
  }
  return EXIT.ok;
}

async function checkPortName(
  store: Store,
  record: RunRecord | undefined,
  kind: MessageKind,
  name: string,
  options: MessageOptions & { readonly key?: string },
): Promise<void> {
  const { key } = options;
  // The engine refuses messages to a run that has ended.
  if (options.file !== undefined || record === undefined || hasEnded(record.status)) return;
  const known = await readPorts(store, record, kind);
  if (known.get(key === undefined ? name : `${name}[${key}]`)?.name === name) return;
  for (const other of MESSAGE_KINDS) {
    if (other === kind || !(await readPortNames(store, record, other)).has(name)) continue;
    const verb = verbOf(other);
    throw new CommandError(
      "UNKNOWN_PORT",
      `Run ${record.id} has no ${kind} \`${name}\`. \`${name}\` is ${other === "update" ? "an" : "a"} ${other}: use \`reprise ${verb}\`.`,
      `reprise ${verb} ${shellWord(record.id)} ${shellWord(name)} '<value as JSON>'`,
      { details: { run: record.id, name, kind: other } },
    );
  }
  const ids = [...known.values()].map((port) =>
    port.key === undefined ? port.name : `${port.name} --key ${port.key}`,
  );
  const names = known.size === 0 ? "" : ` It has waited for: ${ids.map(plain).join(", ")}.`;
  const withKey = key === undefined ? "" : ` with the key \`${key}\``;
  throw new CommandError(
    "UNKNOWN_PORT",
    `${subjectOf(record.id, kind)} named \`${name}\`${withKey} yet.${names} Pass --file to validate the name against the code and deliver it early.`,
    // Not the same command with --file: the name may be mistyped.
    `reprise show ${shellWord(record.id)}`,
    { details: { run: record.id, name, known: [...known.keys()] } },
  );
}

/** The command that sends a message of this kind. */
function verbOf(kind: MessageKind): string {
  return kind === "promise" ? "resolve" : kind;
}

function subjectOf(id: string, kind: MessageKind): string {
  return kind === "update" ? `Run ${id} has not received an update` : `Run ${id} is not waiting for a ${kind}`;
}

const TYPES_WITH_PORT_NAMES: ReadonlySet<EntryType> = new Set<EntryType>([
  "PromiseCreated",
  "SignalReceived",
  "UpdateRequested",
]);

/** The port names in the journal: promises and signals the run waits or waited for, signals and updates it received. */
export async function readPortNames(store: Store, record: RunRecord, kind: MessageKind): Promise<ReadonlySet<string>> {
  return new Set([...(await readPorts(store, record, kind)).values()].map(({ name }) => name));
}

interface Port {
  readonly name: string;
  /** Only of a promise. */
  readonly key?: string;
}

/** By name; promises by id. */
async function readPorts(store: Store, record: RunRecord, kind: MessageKind): Promise<ReadonlyMap<string, Port>> {
  const ports = new Map<string, Port>();
  for (const stored of await store.readJournal(record.run, 0)) {
    if (!TYPES_WITH_PORT_NAMES.has(stored.type)) continue;
    for (const [id, port] of portsOf(typedEntryOf(journalEntryOf(stored)), kind)) ports.set(id, port);
  }
  return ports;
}

function portsOf(entry: TypedEntry, kind: MessageKind): readonly (readonly [id: string, port: Port])[] {
  const named = (name: unknown): readonly (readonly [string, Port])[] =>
    typeof name === "string" ? [[name, { name }]] : [];
  switch (entry.type) {
    case "PromiseCreated": {
      const { promiseId, key, receives } = entry.data;
      if (kind === "signal") return (receives ?? []).flatMap(named);
      if (kind !== "promise" || receives !== undefined || typeof promiseId !== "string") return [];
      const ofKey = typeof key === "string" ? { key } : {};
      return [[promiseId, { name: promiseNameOf({ promiseId, ...ofKey }), ...ofKey }]];
    }
    case "SignalReceived":
      return kind === "signal" ? named(entry.data.name) : [];
    case "UpdateRequested":
      return kind === "update" ? named(entry.data.name) : [];
    default:
      return [];
  }
}
