// What a worker is made of.

import type { Random, Timers } from "../base/index.ts";
import type { EndStatus, EndEntry, Labels, RunNumber, RunRecord, Store } from "../kernel/index.ts";
import type { Determinism, Guard, LogLevel } from "../workflow/index.ts";
import type { OutboxHandler } from "./deliveries.ts";
import type { Registry } from "./registry.ts";

export interface WorkerOptions {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: Random;
  readonly registry: Registry;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** False: a client only; nothing is claimed. */
  readonly works: boolean;
  readonly concurrency: number;
  /** The names of the queues it works on; undefined: all. */
  readonly queues: readonly string[] | undefined;
  readonly labels: Labels;
  readonly leaseMs: number;
  readonly heartbeats: boolean;
  readonly polls: boolean;
  readonly determinism: Determinism;
  /** By destination. */
  readonly outbox?: ReadonlyMap<string, OutboxHandler>;
  readonly guard: Guard;
  readonly runtime: string;
  /** Bytes one payload may have, where that is less than what can be kept. */
  readonly payloadLimit?: number | undefined;
  /** The longest journal a run may have; default: a million entries. */
  readonly entryLimit?: number | undefined;
  /** What a new run's first entry is salted with, where payloads are encrypted. */
  readonly newSalt?: (() => string) | undefined;
  readonly log: (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;
  /** A run ended in this process; its last entry says how. */
  readonly onEnded: (record: RunRecord, status: EndStatus, last: EndEntry) => void;
  /** A commit of a run held here is durable. */
  readonly onMoved: (record: RunRecord) => void;
  /** A run was stopped, or is no longer held here: whoever waits for it must look. */
  readonly onUnheld: (record: RunRecord) => void;
  /** Called instead of an operation's own function, in tests. */
  readonly stubOperation?: (name: string) => ((input: unknown) => unknown) | undefined;
  /** Another process wrote: something about these runs, or about any. */
  readonly onChanged: (runs?: ReadonlySet<RunNumber>) => void;
}
