// Claimer: claims work when some may be ready and the worker has capacity.
//
// Claims join the next batch of the pump, so that under load they need no separate transaction. With a remote store they
// follow the batch instead (pump.P6).
//
// claimer.C2. A batch that frees slots of queues also fills them (queue.Q5), with as many items as it frees. It does not while other
//   items wait for capacity of the worker: then one claim takes both, by priority and age.
//
// claimer.C1. A claim on a remote store skips rows that another transaction has locked, and a database may lock more rows than a
//   transaction changes. So a claim that ran beside other writes of this process is repeated once when none is in flight. Rows that
//   other processes lock are found by the next poll.

import {
  groupSize,
  SUSPECT_AFTER,
  WORK_KINDS,
  type ChangeNotice,
  type AheadClaim,
  type ClaimedItem,
  type ClaimItemsOutcome,
  type ClaimItemsWrite,
  type OutcomeOf,
  type QueueSlot,
  type ThrottledWork,
  type WorkKind,
  type Write,
} from "../kernel/index.ts";
import type { SubmittedWrite } from "./pump.ts";
import type { PartsOf } from "./worker-parts.ts";
import { WEBHOOK_CLAIM } from "./webhook-relay.ts";

type UsedParts = PartsOf<
  | "claimant"
  | "dispatch"
  | "eagerClaims"
  | "filter"
  | "gates"
  | "lease"
  | "localQueue"
  | "log"
  | "outbox"
  | "poller"
  | "pump"
  | "quarantine"
  | "runs"
  | "slots"
  | "tasks"
  | "timers"
>;

/** Events of webhooks are messages of the outbox, claimed apart from the others: they need no slots (webhook-relay.W1). */
type ClaimKind = Exclude<WorkKind, "schedules"> | "events";

export const CLAIM_KINDS: readonly ClaimKind[] = [...WORK_KINDS.filter((kind) => kind !== "schedules"), "events"];

/** claimer.C1. The kinds whose claims skip locked rows. */
const SKIPPING: ReadonlySet<ClaimKind> = new Set<ClaimKind>(["turns", "items", "messages", "events"]);

const CLAIM_LIMIT = 512;
/** With a remote store, so that one worker does not claim what others wait for. */
const REMOTE_CLAIM_LIMIT = 64;
const LARGEST_GROUP = groupSize(SUSPECT_AFTER);
const FIRE_LIMIT = 1_000;
/** What it costs to start a claimed turn, as a size of payloads (turn-budget.B1). */
const TURN_COST = 2_048;
/** Delay after a failed claim. */
const PAUSE_MS = 250;

export class Claimer {
  readonly #parts: UsedParts;
  readonly #requested: Record<ClaimKind, boolean> = {
    starts: true,
    turns: true,
    items: true,
    due: true,
    messages: true,
    events: true,
  };
  readonly #claiming: Record<ClaimKind, boolean> = {
    starts: false,
    turns: false,
    items: false,
    due: false,
    messages: false,
    events: false,
  };
  /** The last claim left work that waits for its queue's limits. */
  readonly #isThrottled = { starts: false, items: false };
  /**
   * Whether a claim may return suspects: the last one did, or the worker has not claimed since it started or took over. Then
   * turns and items are claimed one after the other, because a worker isolates one group of suspects at a time.
   */
  readonly #mayBringSuspects = { turns: true, items: true };
  /** claimer.C1. The kinds whose last claim may have skipped rows. */
  readonly #unconfirmed = new Set<ClaimKind>();
  #isMessagesTurn = false;
  /** How many items the claim in flight may take. */
  #itemsInFlight = 0;
  /** claimer.C2. Items wait for capacity of the worker. */
  #lacksCapacity = false;
  /** claimer.C2. How many items refills in flight may claim. */
  #refilling = 0;
  #isItemsTurn = false;
  /** Items may be waiting: a commit left one, the worker had no free slot, or it has not claimed yet. */
  #hasItemBacklog = true;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** Work of these kinds may be ready. */
  request(...kinds: readonly ClaimKind[]): void {
    if (kinds.includes("items")) this.#hasItemBacklog = true;
    for (const kind of kinds) this.#requested[kind] = true;
    if (kinds.includes("messages")) this.#requested.events = true;
    this.#parts.pump.wake();
  }

  /** Polls for every kind, without assuming an item backlog. */
  requestAll(): void {
    for (const kind of CLAIM_KINDS) this.#requested[kind] = true;
    this.#parts.pump.wake();
  }

  /** The work of dead workers can be claimed. */
  onTakeover(): void {
    this.#mayBringSuspects.turns = true;
    this.#mayBringSuspects.items = true;
    this.request(...CLAIM_KINDS);
  }

  /** Whether items may be waiting that go before new ones. */
  get hasItemBacklog(): boolean {
    return this.#hasItemBacklog;
  }

  /** The store reports which kinds of work may be ready. */
  onNotice({ work }: ChangeNotice): void {
    for (const kind of work) if (kind !== "schedules") this.request(kind);
    this.onQueueSlotFreed();
  }

  /** Does not wake the pump: the caller is about to commit. */
  markItemBacklog(): void {
    this.#requested.items = true;
    this.#hasItemBacklog = true;
  }

  /** A queue limit may allow more work now. Not for slots that a refill fills (claimer.C2). `ofItems`: not only of runs. */
  onQueueSlotFreed(ofItems = true): void {
    // A claim in flight may not see the slot, and only its answer tells whether work waits for one.
    if (ofItems && (this.#isThrottled.items || this.#claiming.items)) this.request("items");
    if (this.#isThrottled.starts || this.#claiming.starts) this.request("starts");
  }

  isRequested(kind: ClaimKind): boolean {
    return this.#requested[kind] && (kind !== "messages" || this.#parts.outbox.destinations.length > 0);
  }

  /** Adds claims to the batch that is about to be written. */
  claim(): void {
    const { claimant: worker, gates, quarantine, runs, slots, localQueue, outbox } = this.#parts;
    gates.returnSlots();
    if (worker === undefined) return;
    this.#confirm();
    const room = quarantine.isActive ? 0 : runs.room;
    // First, so that the same batch claims the runs it admits.
    if (this.#takeRequest("starts", room)) this.#admit(room);
    const free = quarantine.isActive ? 0 : Math.max(0, slots.free - this.#refilling);
    const share = this.isRequested("messages") ? this.#shareOfMessages(free) : 0;
    // suspects.S2. A suspect starts at once.
    const roomForItems = quarantine.isActive || this.#mayBringSuspects.items ? free : localQueue.room - this.#refilling;
    const [turns, items] = this.#separateSuspects(room, roomForItems - share, free);
    if (this.#takeRequest("turns", turns)) this.#claimTurns(worker, turns);
    if (this.#takeRequest("messages", share)) this.#claimMessages(worker, share);
    if (this.#takeRequest("items", items)) this.#claimItems(worker, items);
    else if (this.#requested.items && roomForItems <= share) this.#hasItemBacklog = this.#lacksCapacity = true;
    if (this.#takeRequest("due", 1)) this.#fireDue();
    const webhooks = quarantine.isActive ? [] : outbox.webhooks;
    if (this.#takeRequest("events", webhooks.length)) this.#claimEvents(worker, webhooks);
  }

  /** suspects.S2. How many turns and items to claim now; no more suspects than can start at once. */
  #separateSuspects(turns: number, items: number, free: number): readonly [turns: number, items: number] {
    const { turns: maybeTurns, items: maybeItems } = this.#mayBringSuspects;
    if (!maybeTurns && !maybeItems) return [turns, items];
    if (this.#claiming.turns || this.#claiming.items) return [0, 0];
    const few = maybeTurns ? Math.min(turns, Math.max(1, free)) : turns;
    if (!this.#requested.turns || !this.#requested.items || turns <= 0 || items <= 0) return [few, items];
    this.#isItemsTurn = !this.#isItemsTurn;
    return this.#isItemsTurn ? [0, items] : [few, 0];
  }

  /** Wakes the pump when the other kind waited for this claim. */
  #noteSuspects(kind: "turns" | "items", claimed: readonly { readonly suspicion: number }[]): void {
    const hasSuspects = claimed.some(({ suspicion }) => suspicion > 0);
    this.#mayBringSuspects[kind] = hasSuspects;
    // More suspects may follow.
    if (hasSuspects) this.request(kind);
    else if (this.#requested.turns || this.#requested.items) this.#parts.pump.wake();
  }

  /** The share of free slots for messages while items are requested too; they alternate for the last slot. */
  #shareOfMessages(free: number): number {
    if (!this.#requested.items) return free;
    this.#isMessagesTurn = !this.#isMessagesTurn;
    return free === 1 && !this.#isMessagesTurn ? 0 : Math.ceil(free / 4);
  }

  #takeRequest(kind: ClaimKind, room: number): boolean {
    if (!this.#requested[kind] || this.#claiming[kind] || room <= 0) return false;
    this.#requested[kind] = false;
    return true;
  }

  get #claimLimit(): number {
    return this.#parts.pump.pollsSeparately ? REMOTE_CLAIM_LIMIT : CLAIM_LIMIT;
  }

  #tokens(count: number, atMost = this.#claimLimit): string[] {
    return Array.from({ length: Math.min(count, atMost) }, () => this.#parts.eagerClaims.newToken());
  }

  /** suspects.S2. A group of suspects may exceed the limit: the worker claims nothing else until they have committed. */
  #tokensFor(kind: "turns" | "items", count: number): string[] {
    return this.#tokens(count, this.#mayBringSuspects[kind] ? LARGEST_GROUP : this.#claimLimit);
  }

  #claimTurns(worker: number, room: number): void {
    const { definitions } = this.#parts.filter;
    const tokens = this.#tokensFor("turns", room);
    this.#submit("turns", { write: "claim-turns", worker, tokens, definitions }, (turns) => {
      if (turns.length === tokens.length) this.request("turns");
      this.#noteSuspects("turns", turns);
      for (const turn of turns)
        this.#start(turn, TURN_COST, () => {
          if (this.#holds(worker)) this.#parts.dispatch.turn(turn);
        });
    });
  }

  #admit(room: number): void {
    const { definitions } = this.#parts.filter;
    const limit = Math.min(room, this.#claimLimit);
    this.#submit("starts", { write: "admit", definitions, limit }, ({ runs, ...waiting }) => {
      if (runs.length > 0) this.request("turns");
      if (runs.length === limit) this.request("starts");
      this.#noteBacklog("starts", waiting);
    });
  }

  #noteBacklog(kind: "starts" | "items", { nextAt, held }: ThrottledWork): void {
    this.#isThrottled[kind] = held;
    this.#parts.poller.dueAt(nextAt);
  }

  #claimItems(worker: number, room: number): void {
    const { gates, filter } = this.#parts;
    const own = this.#tokensFor("items", room);
    this.#hasItemBacklog = this.#lacksCapacity = false;
    this.#itemsInFlight = own.length;
    const ahead = this.#mayBringSuspects.items ? NOTHING : gates.request(this.#roomAhead(own));
    const tokens = this.#withTokensFor(own, ahead);
    const write = {
      write: "claim-items",
      worker,
      tokens,
      names: filter.items,
      ...aheadIn(ahead),
      ...this.#turnsFor(tokens),
    } as const;
    const done = (outcome: ClaimItemsOutcome): void => {
      const { items } = outcome;
      this.#noteBacklog("items", outcome);
      if (items.length === tokens.length) this.request("items");
      this.#noteSuspects("items", items);
      gates.onClaimed(worker, ahead, outcome);
      this.#dispatch(worker, items);
    };
    this.#submit("items", write, done, () => gates.onFailed(ahead));
  }

  #dispatch(worker: number, items: readonly ClaimedItem[]): void {
    const { dispatch, gates, tasks } = this.#parts;
    for (const item of items) {
      // Until it starts, it can be dropped like the items that wait here for a slot.
      const running = this.#holds(worker) ? tasks.expect(item) : undefined;
      this.#start(item, item.data.length, () => {
        gates.onDispatched(item);
        if (running !== undefined) dispatch.item(running);
      });
    }
  }

  /** queue.Q6. How many items to claim ahead of slots: the worker holds their runs. */
  #roomAhead({ length }: readonly string[]): number {
    return this.#parts.runs.room - length;
  }

  #withTokensFor(own: readonly string[], ahead: readonly AheadClaim[]): readonly string[] {
    const count = ahead.reduce((sum, claim) => sum + claim.count, 0);
    return count === 0 ? own : [...own, ...this.#tokens(count, count)];
  }

  /** worker.R3. Whether the worker still holds what it has claimed under this number. */
  #holds(worker: number): boolean {
    return worker === this.#parts.lease.worker;
  }

  /** turn-budget.B1. A suspect starts before anything else is claimed (suspects.S2). */
  #start({ suspicion }: { readonly suspicion: number }, size: number, start: () => void): void {
    const { turn } = this.#parts.pump;
    if (suspicion > 0) return start();
    turn.run(() => {
      turn.spend(size);
      start();
    });
  }

  /** Whether a claim of items takes the turns of their runs, too: if the worker may hold that many more. */
  #turnsFor({ length }: readonly string[]): Pick<ClaimItemsWrite, "turnsOf"> {
    const { runs, filter } = this.#parts;
    return length <= runs.room ? { turnsOf: filter.definitions } : {};
  }

  /** claimer.C2 */
  refill(writes: readonly Write[]): SubmittedWrite | undefined {
    const freed = freedSlots(writes);
    const { claimant: worker, filter, gates, pump, quarantine, slots } = this.#parts;
    if (freed.length === 0 || worker === undefined || quarantine.isActive) return undefined;
    const isClaiming = this.#claiming.items;
    // A claim of the same batch fills them.
    if (isClaiming && !pump.pollsSeparately) return undefined;
    const refills = [...new Set(freed)].filter((queue) => filter.itemsOf(queue).length > 0);
    // An item that holds a slot of its queue starts at once.
    const free = slots.free - this.#refilling - (isClaiming ? this.#itemsInFlight : 0);
    const count = freed.reduce((sum, queue) => sum + Number(!gates.keeps(queue)), 0);
    const isLeft = this.#lacksCapacity || refills.length === 0;
    const own = this.#tokens(isLeft ? 0 : Math.max(0, Math.min(free, count)));
    const ahead = isLeft ? NOTHING : gates.request(this.#roomAhead(own), refills);
    const tokens = this.#withTokensFor(own, ahead);
    if (tokens.length === 0) {
      // Not while enough items wait here for the slots.
      this.#requested.items ||= this.#isThrottled.items && (isLeft || count > 0);
      return undefined;
    }
    this.#refilling += own.length;
    const names = [...new Set(refills.flatMap((queue) => filter.itemsOf(queue)))];
    return {
      write: { write: "claim-items", worker, tokens, names, refills, ...aheadIn(ahead), ...this.#turnsFor(tokens) },
      resolve: (outcome) => {
        this.#refilling -= own.length;
        gates.onClaimed(worker, ahead, outcome as ClaimItemsOutcome);
        this.#onRefilled(worker, outcome as ClaimItemsOutcome, own.length);
      },
      reject: () => {
        this.#refilling -= own.length;
        gates.onFailed(ahead);
      },
    };
  }

  /** `freed`: how many of the slots were to be filled. */
  #onRefilled(worker: number, { items, held, nextAt }: ClaimItemsOutcome, freed: number): void {
    this.#parts.poller.dueAt(nextAt);
    if (held) this.#isThrottled.items = true;
    // Suspects, or items of tasks that this worker does not have, wait for the slots.
    if (held && items.length < Math.max(1, freed)) this.request("items");
    this.#dispatch(worker, items);
  }

  #claimMessages(worker: number, room: number): void {
    const { destinations } = this.#parts.outbox;
    const tokens = this.#tokens(room);
    this.#submit("messages", { write: "claim-messages", worker, tokens, destinations }, ({ messages, nextAt }) => {
      if (messages.length === tokens.length) this.request("messages");
      for (const message of messages) this.#parts.dispatch.message(message);
      this.#parts.poller.dueAt(nextAt);
    });
  }

  #claimEvents(worker: number, destinations: readonly string[]): void {
    const tokens = this.#tokens(destinations.length * WEBHOOK_CLAIM);
    const write = { write: "claim-messages", worker, tokens, destinations, perDestination: WEBHOOK_CLAIM } as const;
    this.#submit("events", write, ({ messages, nextAt }) => {
      for (const message of messages) this.#parts.dispatch.message(message);
      this.#parts.poller.dueAt(nextAt);
    });
  }

  #fireDue(): void {
    this.#submit("due", { write: "fire-due", limit: FIRE_LIMIT }, ({ runs, ready, nextAt }) => {
      for (const run of runs) this.#parts.runs.arrived(run);
      if (ready > 0) this.request("items", "starts");
      this.#parts.poller.dueAt(nextAt);
    });
  }

  /** claimer.C1 */
  #confirm(): void {
    if (this.#unconfirmed.size === 0 || !this.#parts.pump.isQuiet) return;
    for (const kind of this.#unconfirmed) this.#requested[kind] = true;
    this.#unconfirmed.clear();
  }

  #submit<W extends Write>(kind: ClaimKind, write: W, then: (outcome: OutcomeOf<W>) => void, failed = () => {}): void {
    const { pump, log, timers } = this.#parts;
    this.#claiming[kind] = true;
    pump.poll(write).then(
      ({ outcome, isAlone }) => {
        this.#claiming[kind] = false;
        if (!isAlone && SKIPPING.has(kind)) this.#unconfirmed.add(kind);
        // With a remote store no batch follows: requests made during this claim would wait for the next poll.
        if (this.#requested[kind] || this.#unconfirmed.size > 0) pump.wake();
        then(outcome);
      },
      (error: unknown) => {
        this.#claiming[kind] = false;
        failed();
        log.report(error);
        timers.set(PAUSE_MS, () => this.request(kind), { ref: false });
      },
    );
  }
}

/** The queues of the slots that these writes free if they are committed, one per slot. */
function freedSlots(writes: readonly Write[]): readonly string[] {
  const queues: string[] = [];
  for (const write of writes) for (const { slot } of fencesOf(write)) if (slot !== undefined) queues.push(slot.queue);
  return queues;
}

const NOTHING: readonly never[] = [];

function aheadIn(ahead: readonly AheadClaim[]): Pick<ClaimItemsWrite, "ahead"> {
  return ahead.length === 0 ? {} : { ahead };
}

const NO_FENCES: readonly { readonly slot?: QueueSlot }[] = [];

/** The items that the write ends or delays. */
function fencesOf(write: Write): readonly { readonly slot?: QueueSlot }[] {
  if (write.write === "turn") return write.finished;
  if (write.write === "end-item") return [write];
  // An item that goes back at once may be claimed by any worker.
  if (write.write === "return-item") return write.availableAt === undefined ? NO_FENCES : [write];
  return write.write === "complete" && "item" in write.fence ? [write.fence] : NO_FENCES;
}
