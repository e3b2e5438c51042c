// WorkerOptions: what the engine passes to its worker.

import type { Random, Timers } from "../base/index.ts";
import type { EndedRunStatus, EndEntry, Labels, RunNumber, RunRecord, Store, Telemetry } from "../kernel/index.ts";
import type { Determinism, Guard, LogLevel } from "../workflow/index.ts";
import type { OutboxHandler } from "./outbox-relay.ts";
import type { ForeignMemos } from "./foreign-memos.ts";
import type { RemoteTasks } from "./remote-tasks.ts";
import type { Registry } from "../process/index.ts";
import type { WebhookEndpoint } from "./webhook-endpoint.ts";

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
  /** The queues the worker claims from; undefined: all. */
  readonly queues: readonly string[] | undefined;
  readonly labels: Labels;
  readonly leaseMs: number;
  /** run-cache.C1. The limit of the runs in memory, in bytes; default: 256 MiB (held-runs.ts). */
  readonly memory?: number | undefined;
  readonly heartbeats: boolean;
  readonly polls: boolean;
  readonly determinism: Determinism;
  /** Handlers by destination. */
  readonly outbox?: ReadonlyMap<string, OutboxHandler>;
  /** Where events of runs are sent. */
  readonly webhooks?: readonly WebhookEndpoint[] | undefined;
  readonly guard: Guard;
  readonly runtime: string;
  /** The largest payload in bytes, if smaller than the store's limit. */
  readonly payloadLimit?: number | undefined;
  /** The longest journal to replay; default: a million entries (journal-limit.ts). */
  readonly entryLimit?: number | undefined;
  /** A salt for a new run's first entry, if payloads are encrypted. */
  readonly newSalt?: (() => string) | undefined;
  /** The runs are copies in memory: their failures are not logged. */
  readonly isCopy?: boolean;
  readonly log: (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;
  /** A run ended in this process; `last` is its last entry. */
  readonly onEnded: (record: RunRecord, status: EndedRunStatus, last: EndEntry) => void;
  /** A commit of a run held here is durable. */
  readonly onCommitted: (record: RunRecord) => void;
  /** A run was stopped, or is no longer held here: waiters must read its status. */
  readonly onUnheld: (record: RunRecord) => void;
  /** The journal of a run has been replayed; what its code requests from now on is executed. For a debugger. */
  readonly onLoaded?: (record: RunRecord) => void;
  /** Results of pure steps that other sites computed. */
  readonly foreignMemos?: ForeignMemos | undefined;
  /** Set: the tasks of this worker are executed at another site. */
  readonly remote?: RemoteTasks | undefined;
  /** Absent: no spans. */
  readonly telemetry?: Telemetry | undefined;
  /** Replaces an operation's function, in tests. */
  readonly stubOperation?: (name: string) => ((input: unknown) => unknown) | undefined;
  /** Another process changed these runs, or any run. */
  /** Returns how many runs are read again. */
  readonly onChanged: (runs?: ReadonlySet<RunNumber>) => number;
}
