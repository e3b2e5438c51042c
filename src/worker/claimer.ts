// Claimer: looks for work when there may be some and there is room for it.
//
// Claims join the next batch of the pump, so that under load they cost no transaction of their own; or follow it, where
// everything that is looked for is a journey (P6).

import type { EpochMs, Timers } from "../base/index.ts";
import {
  groupSize,
  SUSPECT_AFTER,
  WORK_KINDS,
  type ClaimedItem,
  type ClaimedMessage,
  type ClaimedTurn,
  type ChangeNotice,
  type OutcomeOf,
  type RunNumber,
  type Waiting,
  type WorkKind,
  type Write,
} from "../kernel/index.ts";
import type { Pump } from "./pump.ts";
import type { Served } from "./served.ts";

export interface ClaimerHost {
  readonly pump: Pump;
  readonly timers: Timers;
  readonly served: Served;
  /** Where this worker can deliver messages to. */
  readonly destinations: readonly string[];
  /** This worker's number; undefined while nothing may be claimed. */
  worker(): number | undefined;
  /** How many more runs may be held. */
  roomForTurns(): number;
  roomForItems(): number;
  newToken(): string;
  onTurn(turn: ClaimedTurn): void;
  onItem(item: ClaimedItem): void;
  onMessage(message: ClaimedMessage): void;
  onArrival(run: RunNumber): void;
  onNextDue(at: EpochMs | undefined): void;
  failed(error: unknown): void;
}

type Kind = Exclude<WorkKind, "schedules">;

export const KINDS: readonly Kind[] = WORK_KINDS.filter((kind) => kind !== "schedules");

const CLAIM_AT_MOST = 512;
/** Where many workers may be waiting for the same: what one of them takes at once, the others cannot. */
const CLAIM_APART = 64;
const LARGEST_GROUP = groupSize(SUSPECT_AFTER);
const FIRE_AT_MOST = 1_000;
/** Pause after a claim the store could not take. */
const PAUSE_MS = 250;

export class Claimer {
  readonly #host: ClaimerHost;
  readonly #wanted: Record<Kind, boolean> = { starts: true, turns: true, items: true, due: true, messages: true };
  readonly #claiming: Record<Kind, boolean> = {
    starts: false,
    turns: false,
    items: false,
    due: false,
    messages: false,
  };
  /** The last claim left something behind that waits for a place in its queue. */
  readonly #held = { starts: false, items: false };
  /**
   * Whether a claim may bring suspects: the last one did, or nobody has looked since the worker started or took over. A group
   * of turns and a group of items would each be the other's company, so then one waits for the other.
   */
  readonly #mayBringSuspects = { turns: true, items: true };
  #messagesTurn = false;
  #itemsTurn = false;
  /** Somebody left one, there was no room for more, or nobody has looked yet. */
  #itemsWait = true;

  constructor(host: ClaimerHost) {
    this.#host = host;
  }

  /** There may be something to take. */
  want(...kinds: readonly Kind[]): void {
    if (kinds.includes("items")) this.#itemsWait = true;
    for (const kind of kinds) this.#wanted[kind] = true;
    this.#host.pump.kick();
  }

  /** Nothing is known of anything to take; it is looked for all the same. */
  look(): void {
    for (const kind of KINDS) this.#wanted[kind] = true;
    this.#host.pump.kick();
  }

  /** Work of dead workers is free. */
  tookOver(): void {
    this.#mayBringSuspects.turns = true;
    this.#mayBringSuspects.items = true;
    this.want(...KINDS);
  }

  /** Whether items wait that should go before others, as far as is known. */
  get itemsWait(): boolean {
    return this.#itemsWait;
  }

  /** Somebody said what there may be. */
  hear({ work }: ChangeNotice): void {
    for (const kind of work) if (kind !== "schedules") this.want(kind);
    this.freed();
  }

  /** Said without a kick: whoever says it is about to commit anyway. */
  noteItems(): void {
    this.#wanted.items = true;
    this.#itemsWait = true;
  }

  /** Places in queues may have become free. */
  freed(): void {
    if (this.#held.items) this.want("items");
    if (this.#held.starts) this.want("starts");
  }

  wants(kind: Kind): boolean {
    return this.#wanted[kind] && (kind !== "messages" || this.#host.destinations.length > 0);
  }

  /** Adds claims to the batch that is about to be written. */
  claim(): void {
    const worker = this.#host.worker();
    if (worker === undefined) return;
    const room = this.#host.roomForTurns();
    // First, so that the runs that begin are claimed in the same batch.
    if (this.#begins("starts", room)) this.#admit(room);
    const free = this.#host.roomForItems();
    const share = this.wants("messages") ? this.#shareOfMessages(free) : 0;
    const [turns, items] = this.#apart(room, free - share, free);
    if (this.#begins("turns", turns)) this.#claimTurns(worker, turns);
    if (this.#begins("messages", share)) this.#claimMessages(worker, share);
    if (this.#begins("items", items)) this.#claimItems(worker, items);
    else if (this.#wanted.items && free <= share) this.#itemsWait = true;
    if (this.#begins("due", 1)) this.#fireDue();
  }

  /** SU2. How many turns and how many items may be claimed now; suspects no more than can start at once. */
  #apart(turns: number, items: number, free: number): readonly [turns: number, items: number] {
    const { turns: maybeTurns, items: maybeItems } = this.#mayBringSuspects;
    if (!maybeTurns && !maybeItems) return [turns, items];
    if (this.#claiming.turns || this.#claiming.items) return [0, 0];
    const few = maybeTurns ? Math.min(turns, Math.max(1, free)) : turns;
    if (!this.#wanted.turns || !this.#wanted.items || turns <= 0 || items <= 0) return [few, items];
    this.#itemsTurn = !this.#itemsTurn;
    return this.#itemsTurn ? [0, items] : [few, 0];
  }

  /** The other one may have waited. */
  #noteSuspects(kind: "turns" | "items", claimed: readonly { readonly suspicion: number }[]): void {
    const hasSuspects = claimed.some(({ suspicion }) => suspicion > 0);
    this.#mayBringSuspects[kind] = hasSuspects;
    // There may be others behind them.
    if (hasSuspects) this.want(kind);
    else if (this.#wanted.turns || this.#wanted.items) this.#host.pump.kick();
  }

  /** Of the free places, while items want them too; the last one goes to each in turn. */
  #shareOfMessages(free: number): number {
    if (!this.#wanted.items) return free;
    this.#messagesTurn = !this.#messagesTurn;
    return free === 1 && !this.#messagesTurn ? 0 : Math.ceil(free / 4);
  }

  #begins(kind: Kind, room: number): boolean {
    if (!this.#wanted[kind] || this.#claiming[kind] || room <= 0) return false;
    this.#wanted[kind] = false;
    return true;
  }

  get #atMost(): number {
    return this.#host.pump.pollsApart ? CLAIM_APART : CLAIM_AT_MOST;
  }

  #tokens(count: number, atMost = this.#atMost): string[] {
    return Array.from({ length: Math.min(count, atMost) }, () => this.#host.newToken());
  }

  /** A group of suspects may be as large as it gets: who took it takes nothing else for a while (SU2). */
  #tokensFor(kind: "turns" | "items", count: number): string[] {
    return this.#tokens(count, this.#mayBringSuspects[kind] ? LARGEST_GROUP : this.#atMost);
  }

  #claimTurns(worker: number, room: number): void {
    const { definitions } = this.#host.served;
    const tokens = this.#tokensFor("turns", room);
    this.#submit("turns", { write: "claim-turns", worker, tokens, definitions }, (turns) => {
      if (turns.length === tokens.length) this.want("turns");
      this.#noteSuspects("turns", turns);
      for (const turn of turns) this.#host.onTurn(turn);
    });
  }

  #admit(room: number): void {
    const { definitions } = this.#host.served;
    const limit = Math.min(room, this.#atMost);
    this.#submit("starts", { write: "admit", definitions, limit }, ({ runs, ...waiting }) => {
      if (runs.length > 0) this.want("turns");
      if (runs.length === limit) this.want("starts");
      this.#wait("starts", waiting);
    });
  }

  #wait(kind: "starts" | "items", { nextAt, held }: Waiting): void {
    this.#held[kind] = held;
    this.#host.onNextDue(nextAt);
  }

  #claimItems(worker: number, room: number): void {
    const tokens = this.#tokensFor("items", room);
    this.#itemsWait = false;
    this.#submit("items", { write: "claim-items", worker, tokens, names: this.#host.served.items }, (outcome) => {
      const { items } = outcome;
      this.#wait("items", outcome);
      if (items.length === tokens.length) this.want("items");
      this.#noteSuspects("items", items);
      for (const item of items) this.#host.onItem(item);
    });
  }

  #claimMessages(worker: number, room: number): void {
    const { destinations } = this.#host;
    const tokens = this.#tokens(room);
    this.#submit("messages", { write: "claim-messages", worker, tokens, destinations }, ({ messages, nextAt }) => {
      if (messages.length === tokens.length) this.want("messages");
      for (const message of messages) this.#host.onMessage(message);
      this.#host.onNextDue(nextAt);
    });
  }

  #fireDue(): void {
    this.#submit("due", { write: "fire-due", limit: FIRE_AT_MOST }, ({ runs, ready, nextAt }) => {
      for (const run of runs) this.#host.onArrival(run);
      if (ready > 0) this.want("items", "starts");
      this.#host.onNextDue(nextAt);
    });
  }

  #submit<W extends Write>(kind: Kind, write: W, then: (outcome: OutcomeOf<W>) => void): void {
    this.#claiming[kind] = true;
    this.#host.pump.poll(write).then(
      (outcome) => {
        this.#claiming[kind] = false;
        // Behind a network nothing else follows: what was said while it looked would wait for the next poll.
        if (this.#wanted[kind]) this.#host.pump.kick();
        then(outcome);
      },
      (error: unknown) => {
        this.#claiming[kind] = false;
        this.#host.failed(error);
        this.#host.timers.set(PAUSE_MS, () => this.want(kind), { ref: false });
      },
    );
  }
}
