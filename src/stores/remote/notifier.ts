// Notifier: how processes learn of each other's commits.
//
// notifier.U1. Polling is the source of truth: `pollChanges` regularly returns true, whatever notifications were received.
// notifier.U2. Commits that may affect other processes are announced with the kinds of work and the runs they changed
//   (change-notice.ts), never inside their transactions: the first one at once, and under load the commits of some milliseconds
//   in one notification.
// notifier.U3. Without changes polls become rare: an idle engine sends a few queries per second.

import type { ChangeNotice } from "../../kernel/index.ts";
import type { Backend, Change } from "./backend.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { PendingNotice, decodeNotice, encodeNotice } from "./change-notice.ts";
import type { RetryOptions } from "./retry.ts";

/** notifier.U2. The pause after a notification, for each commit it was about, and at most. */
const PAUSE_MS_PER_COMMIT = 5;
const MAX_PAUSE_MS = 20;
/** notifier.U1. Time between polls while changes happen, while none happen, and while notifications are received. */
const BUSY_POLL_MS = 100;
const IDLE_POLL_MS = 500;
const LISTENING_POLL_MS = 2_000;
/** A second limit, for tests in which time stands still. */
const MAX_IDLE_POLLS = 50;
/** How long polls stay frequent after a change. */
const BUSY_MS = 5_000;

export class Notifier {
  readonly #backend: Backend;
  readonly #pool: ConnectionPool;
  readonly #options: RetryOptions;
  /** The changes announced since the last poll; undefined: anything may have changed. */
  #received: PendingNotice | undefined;
  #hasReceived = true;
  #notice: ChangeNotice | undefined;
  #outgoing = new PendingNotice();
  #onNotice: (() => void) | undefined;
  #idlePolls = 0;
  #lastSeenAt: number | undefined;
  #isListening = false;
  #polledAt: number;
  #changedAt = Number.NEGATIVE_INFINITY;
  #sending: Promise<void> | undefined;
  #outgoingCommits = 0;
  /** Ends the pause between two notifications. */
  #skipPause: (() => void) | undefined;
  #closed = false;
  #stopListening: (() => Promise<void>) | undefined;

  constructor(backend: Backend, pool: ConnectionPool, options: RetryOptions) {
    this.#backend = backend;
    this.#pool = pool;
    this.#options = options;
    this.#polledAt = options.clock.monotonic();
  }

  /** Optional: without notifications, changes are found by polling, a little later. */
  async listen(): Promise<void> {
    if (this.#backend.listen === undefined) return;
    try {
      const listener = await this.#backend.listen((text) => this.#receive(text));
      this.#stopListening = () => listener.close();
      this.#isListening = true;
    } catch {
      this.#isListening = false;
    }
  }

  /** Calls back when a notification is received. */
  onNotice(call: () => void): void {
    this.#onNotice = call;
  }

  #receive(text: string): void {
    const notice = decodeNotice(text);
    if (notice === undefined) this.#received = undefined;
    else if (this.#hasReceived) this.#received?.merge(notice);
    else (this.#received = new PendingNotice()).merge(notice);
    this.#hasReceived = true;
    this.#changedAt = this.#options.clock.monotonic();
    this.#onNotice?.();
  }

  /** notifier.U1 */
  pollChanges(): boolean {
    const now = this.#options.clock.monotonic();
    const isBusy = now - this.#changedAt < BUSY_MS;
    const pause = this.#isListening ? LISTENING_POLL_MS : isBusy ? BUSY_POLL_MS : IDLE_POLL_MS;
    if (now === this.#lastSeenAt) this.#idlePolls += 1;
    this.#lastSeenAt = now;
    const isTime = now - this.#polledAt >= pause || this.#idlePolls >= MAX_IDLE_POLLS;
    if (!this.#hasReceived && !isTime) return false;
    this.#notice = isTime ? undefined : this.#received;
    this.#hasReceived = false;
    this.#received = undefined;
    if (isTime) {
      this.#idlePolls = 0;
      this.#polledAt = now;
    }
    return true;
  }

  /** The changes that made the last poll return true; undefined: anything may have changed. */
  takeNotice(): ChangeNotice | undefined {
    return this.#notice;
  }

  /** notifier.U2 */
  committed(changes: readonly Change[]): void {
    if (!this.#outgoing.add(changes)) return;
    this.#changedAt = this.#options.clock.monotonic();
    // The database has no notifications: drop the notice.
    if (this.#backend.notify === undefined) this.#outgoing = new PendingNotice();
    else this.#outgoingCommits += 1;
    if (this.#outgoingCommits > 0 && !this.#closed) this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    while (this.#outgoingCommits > 0) {
      const pauseMs = Math.min(MAX_PAUSE_MS, this.#outgoingCommits * PAUSE_MS_PER_COMMIT);
      this.#outgoingCommits = 0;
      const text = encodeNotice(this.#outgoing);
      this.#outgoing = new PendingNotice();
      await this.#pool
        .use("control", ({ connection }) => this.#backend.notify!(connection, text))
        .catch(() => undefined);
      if (!this.#closed) await this.#pause(pauseMs);
    }
    this.#sending = undefined;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.timers.set(ms, resolve, { ref: false });
      this.#skipPause = () => {
        cancel();
        resolve();
      };
    });
  }

  /** notifier.U2. Sends the last notification: this process no longer works on what it committed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#skipPause?.();
    await this.#sending;
    await this.#stopListening?.().catch(() => undefined);
  }
}
