// The public surface of an engine: handles, filters, options. Types only.

import type { Duration, PayloadCodec } from "../base/index.ts";
import type {
  AnyTask,
  Args,
  Definition,
  JournalEntry,
  InputOf,
  Logger,
  Named,
  OutputOf,
  Payload,
  PortsOf,
  Status,
} from "../kernel/index.ts";
import type { GuardMode, Replay } from "../workflow/index.ts";
import type { StoreSource } from "../stores/index.ts";
import type { RedactOptions } from "./redaction.ts";

/** What is known about a run without reading its journal. */
export interface RunInfo {
  readonly id: string;
  readonly definition: string;
  readonly kind: Definition["kind"];
  readonly version: number;
  readonly status: Status;
  readonly createdAt: Date;
  readonly endedAt?: Date;
  readonly tags: readonly string[];
  /** How many entries its journal has. */
  readonly entries: number;
  readonly digest: string;
  /** Why it failed or was stopped; only from `info()` and `find()`. */
  readonly error?: Error;
}

export interface SignalOptions {
  /** A second signal with the same id to the same run is dropped in silence, for a day at least. */
  dedupId?: string;
}

export interface StartOptions {
  /** Starting the same id with the same input again gives the same run; with another input it is refused. */
  id?: string;
  tags?: readonly string[];
  /** Higher goes first. */
  priority?: number;
}

/** A handle on one run, typed by its definition. */
export interface Run<D> {
  readonly id: string;
  /** Waits for the end: gives the output, or throws what went wrong. */
  result(options?: { timeout?: Duration }): Promise<OutputOf<D>>;
  info(): Promise<RunInfo>;
  /** Sends a signal: the run takes it when it is ready for it, in the order signals came. */
  signal<K extends Named<PortsOf<D>, "signal">>(
    name: K,
    ...value: Args<Payload<PortsOf<D>[K]>, SignalOptions>
  ): Promise<void>;
  /** Gives a promise port its value; a second value is refused. */
  resolve<K extends Named<PortsOf<D>, "promise">>(name: K, ...value: Args<Payload<PortsOf<D>[K]>, {}>): Promise<void>;
  reject(name: Named<PortsOf<D>, "promise">, error: Error): Promise<void>;
  /**
   * The chunks of a stream behind the offset `after`, those to come included; ends with the run. Offsets are dense from 1:
   * whoever keeps the last one it has seen goes on from there, in any process.
   */
  stream<K extends Named<PortsOf<D>, "stream">>(
    name: K,
    options?: { after?: number },
  ): AsyncIterable<{ readonly offset: number; readonly value: Payload<PortsOf<D>[K]> }>;
  /** Asks the run to stop: what it waits for rejects with `CancelledError`. */
  cancel(reason?: string): Promise<void>;
  /** Lets a run that was stopped (`blocked`, `determinism_violation`, `paused`) go on with today's code. */
  resume(): Promise<void>;
  journal(options?: { after?: number }): AsyncIterable<JournalEntry>;
  /** Runs today's code against the journal, strictly; nothing outside is called, nothing is written. */
  replay(): Promise<Replay>;
  /** `replay`, and the journal against its own hash chain. */
  verify(): Promise<Replay>;
}

export interface Filter {
  definition?: string;
  status?: Status | readonly Status[];
  tag?: string;
  /** The id of a run: only older ones. */
  after?: string;
  limit?: number;
}

/** A definition of the engine, or its name. */
export type Picked<Defs, W> = W extends string ? Extract<Defs, { name: W }> : W;

export interface Client<Defs extends Definition = Definition> {
  start<W extends Defs | Defs["name"]>(
    what: W,
    ...args: Args<InputOf<Picked<Defs, W>>, StartOptions>
  ): Promise<Run<Picked<Defs, W>>>;
  /** The handle of a run that exists, or will. */
  run<W extends Defs | Defs["name"]>(what: W, id: string): Run<Picked<Defs, W>>;
  find(id: string): Promise<RunInfo | undefined>;
  /** Newest first. */
  list(filter?: Filter): AsyncIterable<RunInfo>;
}

export interface Engine<Defs extends Definition = Definition> extends Client<Defs>, AsyncDisposable {
  /** Starts nothing new, lets what is at work finish, gives the rest back. */
  drain(options?: { grace?: Duration }): Promise<void>;
  /** Drains and closes the store. */
  close(options?: { grace?: Duration }): Promise<void>;
}

export interface WorkerSettings {
  /** How many tasks and operations run at once; default 256. */
  concurrency?: number;
  /** How long a dead worker's work stays its own; default 15 seconds. */
  lease?: Duration;
}

export interface EngineOptions<Defs> {
  /** `"sqlite:shop.db"`, `"sqlite::memory:"`, or what `sqlite(path)` from `reprise/sqlite` gives. */
  store: string | StoreSource;
  /** Workflows and tasks; a worker claims only what it has. */
  definitions: readonly Defs[];
  /** `false`: a client that starts and asks, and runs nothing. */
  worker?: false | WorkerSettings;
  /** `"relaxed"` may lose the last commits in a power cut, never their order. */
  durability?: "full" | "relaxed";
  /** What payloads are written and read with, such as `aesGcm({ keys, current })`; default: kept as they are. */
  codec?: PayloadCodec;
  /** What is a secret in log lines and errors, besides the usual names; `false`: nothing is. */
  redact?: false | RedactOptions;
  /**
   * What happens when workflow code asks the machine for the time, for chance or for the network instead of `ctx`: it
   * throws (`"error"`), a warning is logged once per place, or nothing. Default: `"error"`, with NODE_ENV=production `"off"`.
   */
  guard?: GuardMode;
  /** Where `ctx.log` and the engine's own messages go; default: one line each on standard error. */
  logger?: Logger;
}

export type DefinitionsIn<Defs> = Extract<Defs, Definition>;
export type { AnyTask };
