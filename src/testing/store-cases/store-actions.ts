// Store actions: the helpers of the cases. Each makes the smallest write that a real worker could make, so that the store's `check`
// finds no problem.

import assert from "node:assert/strict";
import {
  chainAfter,
  type Arrival,
  type Claim,
  type ClaimedItem,
  type ClaimedTurn,
  type DefinitionVersion,
  type Entry,
  type EntryType,
  type InboxRow,
  type EndItemWrite,
  markOf,
  type MessageWrite,
  type NewItem,
  type NewRun,
  type RunNumber,
  type RunRecord,
  type StartWrite,
  type Store,
  type TurnWrite,
} from "../../kernel/index.ts";

export const LEASE_MS = 30_000;

let issued = 0;

/** Unique in the process. */
export function newToken(): string {
  issued += 1;
  return issued.toString(16).padStart(32, "0");
}

export function newTokens(count: number): readonly string[] {
  return Array.from({ length: count }, newToken);
}

export function registerWorker(store: Store, name = "worker"): Promise<number> {
  return store.registerWorker(name, LEASE_MS);
}

export function newRun(id: string, overrides: Partial<NewRun> = {}): NewRun {
  return {
    id,
    definition: "checkout",
    kind: "workflow",
    version: 1,
    priority: 0,
    tags: [],
    started: JSON.stringify({ input: id }),
    runtime: "store cases",
    ...overrides,
  };
}

export function startWrite(id: string, overrides?: Partial<NewRun>): StartWrite {
  return { write: "start", run: newRun(id, overrides) };
}

export async function startRun(store: Store, id: string, overrides?: Partial<NewRun>): Promise<RunRecord> {
  const [outcome] = await store.write([startWrite(id, overrides)]);
  assert.equal(outcome.status, "started");
  return outcome.record;
}

/** A turn that a worker holds, and how far the worker has got. */
export interface HeldTurn {
  readonly run: RunNumber;
  readonly id: string;
  readonly token: string;
  readonly head: number;
  readonly chain: string;
  readonly read: number;
  readonly inbox: readonly InboxRow[];
}

function heldOf(record: RunRecord, token: string, inbox: readonly InboxRow[]): HeldTurn {
  const { run, id, head, chain } = record;
  // Messages that are not in the inbox have been read.
  return { run, id, token, head, chain, read: record.arrivals - inbox.length, inbox };
}

/** Starts a run with its first turn leased to the starter. */
export async function startHeld(
  store: Store,
  worker: number,
  id: string,
  overrides?: Partial<NewRun>,
): Promise<HeldTurn> {
  const claim: Claim = { worker, token: newToken() };
  const [outcome] = await store.write([{ ...startWrite(id, overrides), claim }]);
  assert.equal(outcome.status, "started");
  return heldOf(outcome.record, claim.token, []);
}

/** Claims the due turns of the named definitions, at most a hundred. */
export async function claimTurns(
  store: Store,
  worker: number,
  wanted: readonly (string | DefinitionVersion)[] = ["checkout"],
  count = 100,
): Promise<readonly ClaimedTurn[]> {
  const definitions = wanted.map(versioned);
  const [turns] = await store.write([{ write: "claim-turns", worker, tokens: newTokens(count), definitions }]);
  return turns;
}

/** A name means version 1. */
export function versioned(wanted: string | DefinitionVersion): DefinitionVersion {
  return typeof wanted === "string" ? { name: wanted, version: 1 } : wanted;
}

/** Claims the one turn that is due. */
export async function takeTurn(
  store: Store,
  worker: number,
  definitions?: readonly (string | DefinitionVersion)[],
): Promise<HeldTurn> {
  const turns = await claimTurns(store, worker, definitions);
  assert.equal(turns.length, 1, `one turn should be due, not ${turns.length}`);
  const [turn] = turns as readonly [ClaimedTurn];
  return heldOf(turn.record, turn.token, turn.inbox);
}

export async function claimItems(
  store: Store,
  worker: number,
  names: readonly string[] = ["charge"],
  count = 100,
): Promise<readonly ClaimedItem[]> {
  const [{ items }] = await store.write([{ write: "claim-items", worker, tokens: newTokens(count), names }]);
  return items;
}

/** Claims the one item that is ready. */
export async function takeItem(store: Store, worker: number, names?: readonly string[]): Promise<ClaimedItem> {
  const items = await claimItems(store, worker, names);
  assert.equal(items.length, 1, `one item should be ready, not ${items.length}`);
  return (items as readonly [ClaimedItem])[0];
}

export type EntryParts = readonly [type: EntryType, command: string, data?: string, tookMs?: number];

export interface TurnParts extends Partial<
  Omit<TurnWrite, "write" | "run" | "head" | "previousChain" | "entries" | "chain">
> {
  readonly entries?: readonly EntryParts[];
}

/** A turn's commit: entries chained after the holder's head. `then` is `hold` by default. */
export function turnWrite(store: Store, held: HeldTurn, parts: TurnParts): TurnWrite {
  const { entries: wanted = [], ...rest } = parts;
  let chain = held.chain;
  const entries = wanted.map(([type, command, data = "{}", tookMs], index): Entry => {
    chain = chainAfter(chain, type, command, data);
    const entry = { seq: held.head + 1 + index, type, command, data, at: store.now(), mark: markOf(chain) };
    return tookMs === undefined ? entry : { ...entry, tookMs };
  });
  return {
    write: "turn",
    run: held.run,
    token: held.token,
    head: held.head,
    previousChain: held.chain,
    entries,
    chain,
    read: held.read,
    finished: [],
    items: [],
    dropped: [],
    children: [],
    messages: [],
    chunks: [],
    outgoing: [],
    then: "hold",
    ...rest,
  };
}

/** The held turn after `write` is committed. */
export function heldAfter(held: HeldTurn, write: TurnWrite): HeldTurn {
  const { chain, read } = write;
  return {
    ...held,
    head: held.head + write.entries.length,
    chain,
    read,
    inbox: held.inbox.filter((row) => row.arrival > read),
  };
}

export async function commitTurn(store: Store, held: HeldTurn, parts: TurnParts): Promise<HeldTurn> {
  const write = turnWrite(store, held, parts);
  const [outcome] = await store.write([write]);
  assert.equal(outcome.status, "committed");
  return heldAfter(held, write);
}

export const WAITS: EntryParts = ["PromiseCreated", "Promise(0)", '{"name":"approval"}'];
export const WAITS_AGAIN: EntryParts = ["PromiseCreated", "Promise(1)", '{"name":"second thoughts"}'];
export const DONE: EntryParts = ["RunCompleted", "", '{"output":null}'];
/** The end of a run whose work is done. */
export const COMPLETES: TurnParts = { entries: [DONE], then: "completed" };

/** Starts a run that waits for `approval`, and releases its turn. */
export async function startWaiting(
  store: Store,
  worker: number,
  id: string,
  overrides?: Partial<NewRun>,
): Promise<HeldTurn> {
  return commitTurn(store, await startHeld(store, worker, id, overrides), { entries: [WAITS], then: "release" });
}

export async function startEnded(
  store: Store,
  worker: number,
  id: string,
  overrides?: Partial<NewRun>,
): Promise<HeldTurn> {
  return commitTurn(store, await startHeld(store, worker, id, overrides), COMPLETES);
}

/** Schedules tasks `Task(first)`, `Task(first + 1)`, …: one entry and one item each. */
export function taskParts(
  held: HeldTurn,
  count: number,
  overrides: (n: number) => Partial<NewItem> = () => ({}),
  first = 0,
): { readonly entries: readonly EntryParts[]; readonly items: readonly NewItem[] } {
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  return {
    entries: numbers.map((n): EntryParts => ["TaskScheduled", `Task(${n})`, JSON.stringify({ input: n })]),
    items: numbers.map((n, index) => ({
      item: `Task(${n})`,
      kind: "task" as const,
      name: "charge",
      priority: 0,
      seq: held.head + 1 + index,
      ...overrides(n),
    })),
  };
}

/** Starts timers `Timer(0)`, `Timer(1)`, … that are due at the given times. */
export function timerParts(
  held: HeldTurn,
  ...moments: readonly number[]
): { readonly entries: readonly EntryParts[]; readonly items: readonly NewItem[] } {
  return {
    entries: moments.map((at, n): EntryParts => ["TimerStarted", `Timer(${n})`, JSON.stringify({ at })]),
    items: moments.map((availableAt, n) => ({
      item: `Timer(${n})`,
      kind: "timer" as const,
      name: "TimerFired",
      priority: 0,
      availableAt,
      seq: held.head + 1 + n,
    })),
  };
}

/** Starts a run that has scheduled `Task(0)`, …, and releases its turn. */
export async function startWithTasks(
  store: Store,
  worker: number,
  id: string,
  count: number,
  overrides?: (n: number) => Partial<NewItem>,
): Promise<HeldTurn> {
  const held = await startHeld(store, worker, id);
  return commitTurn(store, held, { ...taskParts(held, count, overrides), then: "release" });
}

export function resolved(data = "{}", target = "approval"): Arrival {
  return { type: "PromiseResolved", target, data };
}

export function message(to: string, arrival: Arrival = resolved()): MessageWrite {
  return { write: "message", to, arrival, once: false };
}

export async function send(store: Store, to: string, arrival?: Arrival): Promise<void> {
  const [outcome] = await store.write([message(to, arrival)]);
  assert.equal(outcome.status, "committed");
}

export function endItemWrite(
  item: { run: RunNumber; item: string; token: string },
  data = '{"output":1}',
): EndItemWrite {
  const { run, token } = item;
  return {
    write: "end-item",
    run,
    item: item.item,
    token,
    arrival: { type: "TaskCompleted", target: item.item, data },
  };
}

export async function getRun(store: Store, id: string): Promise<RunRecord> {
  const record = await store.findRun(id);
  assert.ok(record !== undefined, `run ${id} should exist`);
  return record;
}

export async function inboxData(store: Store, run: RunNumber): Promise<readonly string[]> {
  return (await store.readInbox(run, 0)).map((row) => row.data);
}

export async function fireDue(store: Store, limit = 100) {
  const [outcome] = await store.write([{ write: "fire-due", limit }]);
  return outcome;
}
