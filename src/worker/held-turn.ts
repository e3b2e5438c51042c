// HeldTurn: what goes out of a run in memory: the token of its turn, the commit in flight and the next write.
//
// hot-run.H3 and hot-run.H4 are kept here.

import type { Arrival, ItemFence, TurnWrite } from "../kernel/index.ts";
import type { JournalWriter } from "./journal-writer.ts";
import { EMPTY, PendingCommit } from "./pending-commit.ts";

export class HeldTurn {
  readonly #journal: JournalWriter;
  #token: string | undefined;
  /** The last arrival in the journal, and the last one that a commit says so. */
  #read: number;
  #readCommitted: number;
  #inFlight: PendingCommit | undefined;
  #isReleasing = false;

  constructor(journal: JournalWriter, token: string, read: number) {
    this.#journal = journal;
    this.#token = token;
    this.#read = this.#readCommitted = read;
  }

  get token(): string | undefined {
    return this.#token;
  }
  get read(): number {
    return this.#read;
  }
  get inFlight(): PendingCommit | undefined {
    return this.#inFlight;
  }
  /** Held, and not released by the commit in flight. */
  get isOpen(): boolean {
    return this.#token !== undefined && !this.#isReleasing;
  }
  /** The next commit has something to say. */
  get isDirty(): boolean {
    return this.#journal.pending?.isEmpty === false || this.#read !== this.#readCommitted;
  }

  /** Notes that the journal holds this arrival; false if it already did. */
  advance(arrival: number): boolean {
    if (arrival <= this.#read) return false;
    this.#read = arrival;
    return true;
  }

  /** Another worker may have consumed messages without writing an entry. */
  reacquire(token: string, read: number): void {
    this.#token = token;
    this.#read = this.#readCommitted = read;
    this.#isReleasing = false;
    this.#journal.beginStretch();
  }

  /** Nothing more is committed under the token. */
  abandon(): void {
    this.#token = undefined;
  }

  /** hot-run.H3. Undefined while a commit is in flight, or without a token. */
  take(then: TurnWrite["then"]): TurnWrite | undefined {
    if (this.#token === undefined || this.#inFlight !== undefined) return undefined;
    const pending = this.#journal.takePending();
    this.#inFlight = pending;
    this.#readCommitted = this.#read;
    this.#isReleasing = then !== "hold";
    return this.#journal.writeOf(pending, this.#token, this.#read, then);
  }

  /** The commit in flight is durable. */
  onCommitted(): { readonly pending: PendingCommit; readonly released: boolean } {
    const pending = this.#inFlight ?? new PendingCommit(this.#journal.chain);
    const released = this.#isReleasing;
    this.#inFlight = undefined;
    if (released) this.#token = undefined;
    this.#isReleasing = false;
    return { pending, released };
  }

  /** Results of items whose commit was rejected, to be submitted separately. */
  uncommittedResults(): readonly { readonly fence: ItemFence; readonly arrival: Arrival }[] {
    return [...(this.#inFlight?.results() ?? EMPTY), ...(this.#journal.pending?.results() ?? EMPTY)];
  }
}
