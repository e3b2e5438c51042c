// ClientWriter: the executing side of a process that executes nothing. It writes, and polls for what other processes wrote.
//
// client-writer.W1. Writes submitted in one macrotask share a batch. One batch is in flight; the next one collects meanwhile,
//   so writes reach the store in the order they were submitted.
// client-writer.W2. After `drain` no write reaches the store; every submitted write has settled.

import { RepriseError, type Timers } from "../base/index.ts";
import {
  emit,
  emitEnded,
  isObserved,
  type ChangeNotice,
  type HistoryBreak,
  type Outcome,
  type OutcomeOf,
  type RunRecord,
  type Store,
  type Telemetry,
  type Write,
} from "../kernel/index.ts";
import { endSpans, Poller, ProcessLog, type Registry } from "../process/index.ts";
import type { WorkerEvents, WorkerPort } from "./worker-port.ts";

export interface ClientWriterParts {
  readonly store: Store;
  readonly timers: Timers;
  readonly registry: Registry;
  readonly polls: boolean;
  readonly telemetry?: Telemetry | undefined;
}

interface SubmittedWrite {
  readonly write: Write;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

const NONE: ReadonlySet<string> = new Set();

export class ClientWriter implements WorkerPort {
  readonly works = false;
  timesRolledBack = 0;
  readonly #parts: ClientWriterParts;
  readonly #events: WorkerEvents;
  readonly #log: ProcessLog;
  readonly #poller: Poller;
  #submitted: SubmittedWrite[] = [];
  #isScheduled = false;
  #inFlight: Promise<void> | undefined;
  #stopped = false;

  constructor(parts: ClientWriterParts, events: WorkerEvents) {
    this.#parts = parts;
    this.#events = events;
    this.#log = new ProcessLog(events.log, () => parts.store.now());
    this.#poller = new Poller({
      ...parts,
      onDue: () => undefined,
      onChanged: (notice) => this.#onChanged(notice),
    });
  }

  async start(): Promise<void> {
    const { store, registry } = this.#parts;
    store.onHistoryBreak?.((change) => this.#onHistoryBreak(change));
    // A client that only reads runs, or reads those of a mirror, declares no queue.
    if (store.isReadOnly !== true && store.mirrorOf === undefined) await store.write(registry.queueDeclarations());
    this.#poller.start();
  }

  submit<W extends Write>(write: W): Promise<OutcomeOf<W>> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) return reject(closedError());
      this.#submitted.push({ write, resolve: resolve as (outcome: Outcome) => void, reject });
      this.#schedule();
    });
  }

  /** client-writer.W1 */
  #schedule(): void {
    if (this.#isScheduled || this.#inFlight !== undefined || this.#submitted.length === 0) return;
    this.#isScheduled = true;
    this.#parts.timers.soon(() => {
      this.#isScheduled = false;
      this.#inFlight = this.#write(this.#submitted.splice(0)).finally(() => {
        this.#inFlight = undefined;
        this.#schedule();
      });
    });
  }

  async #write(batch: readonly SubmittedWrite[]): Promise<void> {
    const writes = batch.map(({ write }) => write);
    if (writes.length === 0) return;
    let outcomes: readonly Outcome[];
    const startedAt = this.#parts.store.now();
    try {
      outcomes = await this.#parts.store.write(writes);
    } catch (error) {
      this.#log.report(error);
      for (const { reject } of batch) reject(error);
      return;
    }
    const tookMs = Math.max(0, this.#parts.store.now() - startedAt);
    if (isObserved()) emit({ event: "commit", writes: writes.length, entries: 0, tookMs });
    if (this.#parts.telemetry !== undefined) writes.forEach((write, index) => endSpans(write, outcomes[index]!));
    for (const [index, { resolve }] of batch.entries()) {
      resolve(outcomes[index]!);
      this.#events.onWritten(outcomes[index]);
    }
  }

  async flushed(): Promise<void> {
    while (this.#isScheduled || this.#inFlight !== undefined)
      await (this.#inFlight ?? new Promise<void>((resolve) => this.#parts.timers.soon(resolve)));
  }

  #onHistoryBreak(change: HistoryBreak): void {
    if (this.#stopped) return;
    this.timesRolledBack += Number(change.kind === "rolled_back");
    this.#log.historyBreak(change);
    this.#events.onChanged(undefined);
  }

  #onChanged(notice: ChangeNotice | undefined): number {
    // A process that commits learns of a lost history from its commits; a client that only waits has to ask.
    if (notice === undefined) this.#parts.store.checkHistory?.().catch((error: unknown) => this.#log.report(error));
    return this.#events.onChanged(notice?.runs);
  }

  /** client-writer.W2 */
  async drain(graceMs: number): Promise<boolean> {
    const { timers } = this.#parts;
    // Calls that were made before `close` submit their writes within this macrotask.
    await new Promise<void>((resolve) => timers.soon(resolve));
    let cancelTimer: (() => void) | undefined;
    const isOver = new Promise<false>((resolve) => {
      cancelTimer = timers.set(graceMs, () => resolve(false));
    });
    const finished = await Promise.race([this.flushed().then(() => true), isOver]);
    cancelTimer?.();
    this.#stop();
    return finished;
  }

  #stop(): void {
    this.#stopped = true;
    this.#log.stop();
    for (const { reject } of this.#submitted.splice(0)) reject(closedError());
  }

  close(): void {
    this.#poller.stop();
  }

  crash(): void {
    this.#stop();
    this.#poller.stop();
  }

  onTerminated(record: RunRecord): void {
    if (isObserved()) emitEnded(record, "cancelled", this.#parts.store.now());
    this.#events.onUnheld(record);
  }

  // ── a client holds and executes no run ──

  wake(): void {}
  dueAt(): void {}
  adopt(): void {}
  onArrival(): void {}
  onPaused(): void {}
  onResumed(): void {}
  onRetried(): void {}
  onMigrated(): void {}

  claimEagerly(): undefined {
    return undefined;
  }

  holds(): boolean {
    return false;
  }

  heldIds(): ReadonlySet<string> {
    return NONE;
  }

  findHot(): undefined {
    return undefined;
  }
}

function closedError(): RepriseError {
  const message =
    "The client was closed before it wrote this to the store. Do it again with an open client: createClient(…).";
  return new RepriseError("ENGINE_CLOSED", message);
}
