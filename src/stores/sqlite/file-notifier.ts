// FileNotifier: how the processes on one SQLite file notify each other of commits. A hint: polling `data_version` finds every commit
// without it, a few milliseconds later.
//
// file-notifier.F1. A process notifies the others by setting the times of the index of the log (`-shm`), which the others watch. The
//   index exists while a process has the store open. SQLite maps it into memory, so no other change of it causes an event, and a copy
//   of the store does not contain it. Nothing is created, and nothing is left behind.
// file-notifier.F2. The file is never opened here: closing a descriptor of it would drop the locks that SQLite holds on it.
// file-notifier.F3. A process notifies only after commits that others may wait for (concerns-others.ts), every few milliseconds at
//   most. A process with a worker notifies only while it sees commits of others: one that has the store to itself pays nothing.
// file-notifier.F4. A call that fails (no watches left, a file of another user, a read-only folder) ends the notices, not the work.

import { utimesSync, watch, type FSWatcher } from "node:fs";
import type { Clock, Timers } from "../../base/index.ts";
import type { Outcome, Write } from "../../kernel/index.ts";
import { concernsOthers } from "./concerns-others.ts";

/** file-notifier.F3. The least time between two notices. */
const NOTIFY_MS = 2;
/** file-notifier.F3. How long another process counts after its last commit. Workers renew their leases more often than this. */
const OTHERS_MS = 60_000;

export interface FileNotifierPorts {
  readonly clock: Clock;
  readonly timers: Timers;
}

export class FileNotifier {
  readonly #ports: FileNotifierPorts;
  /** A process without a worker writes for the workers of others. */
  worksHere = false;
  #listener: (() => void) | undefined;
  #watcher: FSWatcher | undefined;
  /** The index of the log; undefined: there is none, or its times cannot be set. */
  #index: string | undefined;
  #othersUntil = Number.NEGATIVE_INFINITY;
  #notifiedAt = Number.NEGATIVE_INFINITY;
  #cancelNotify: (() => void) | undefined;

  constructor(ports: FileNotifierPorts) {
    this.#ports = ports;
  }

  onNotice(listener: () => void): void {
    this.#listener = listener;
  }

  /** The connection has opened this index of the log. A connection that replaces another may have opened a new one. */
  open(index: string | undefined): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#index = index;
    if (index === undefined || this.#listener === undefined) return;
    try {
      this.#watcher = watch(index, { persistent: false }, () => this.#listener?.());
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      // file-notifier.F4
    }
  }

  /** Another process has committed. */
  sawOthers(): void {
    this.#othersUntil = this.#ports.clock.monotonic() + OTHERS_MS;
  }

  /** file-notifier.F3 */
  get #hasOthers(): boolean {
    return this.#index !== undefined && (!this.worksHere || this.#ports.clock.monotonic() < this.#othersUntil);
  }

  committed(writes: readonly Write[], outcomes: readonly Outcome[]): void {
    if (this.#cancelNotify !== undefined || !this.#hasOthers) return;
    if (writes.some((write, index) => concernsOthers(write, outcomes[index]!))) this.#notifySoon();
  }

  /** Work of this process became ready for others. */
  released(): void {
    if (this.#cancelNotify === undefined && this.#hasOthers) this.#notifySoon();
  }

  #notifySoon(): void {
    const { clock, timers } = this.#ports;
    const waitMs = this.#notifiedAt + NOTIFY_MS - clock.monotonic();
    if (waitMs <= 0) this.#notify();
    else this.#cancelNotify = timers.set(waitMs, () => this.#notify(), { ref: false });
  }

  /** file-notifier.F1 */
  #notify(): void {
    const { clock } = this.#ports;
    this.#cancelNotify = undefined;
    this.#notifiedAt = clock.monotonic();
    if (this.#index === undefined) return;
    const seconds = clock.now() / 1_000;
    try {
      utimesSync(this.#index, seconds, seconds);
    } catch {
      // file-notifier.F4
      this.#index = undefined;
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    if (this.#cancelNotify === undefined) return;
    this.#cancelNotify();
    this.#notify();
  }
}
