// Flow actions: the helpers of the completion cases. Each case makes up its flow: the store counts arrivals and knows no definitions.

import assert from "node:assert/strict";
import {
  nodeRoute,
  type Claim,
  type ClaimedItem,
  type CompleteOutcome,
  type CompleteWrite,
  type EndedRunStatus,
  type NewEntry,
  type NewRun,
  type NewSpread,
  type NodeArrival,
  type NodeFence,
  type NodeItem,
  type RunNumber,
  type SpreadPortion,
  type Store,
} from "../../kernel/index.ts";
import { claimItems, getRun, startHeld, type HeldTurn } from "./store-actions.ts";

export const ROUTE = nodeRoute("import", 1);
export const MAIL_ROUTE = nodeRoute("import", 1, "mail");
export const FLOW: Partial<NewRun> = { definition: "import", kind: "flow" };
export const NODE: NodeItem = { name: ROUTE, priority: 0 };

export function leasedTo(claim: Claim): NodeItem {
  return { ...NODE, claim };
}

/** One arrival with the value of the write's first entry. `required` arrivals make the target ready. */
export function arrival(target: string, edge: string, required: number | undefined, more: Partial<NodeArrival> = {}) {
  return { target, edge, index: -1, kind: "value", required, cause: 0, node: NODE, ...more } as const;
}

export function done(node: string, data = "{}"): NewEntry {
  return { type: "NodeCompleted", command: node, data };
}
export const RUN_COMPLETED: NewEntry = { type: "RunCompleted", command: "", data: '{"output":1}' };
export const RUN_FAILED: NewEntry = { type: "RunFailed", command: "", data: "{}" };

export type CompleteParts = Partial<Omit<CompleteWrite, "write" | "run" | "fence">>;

export function completeWrite(run: RunNumber, fence: NodeFence, parts: CompleteParts): CompleteWrite {
  const nothing = { entries: [], arrivals: [], advances: [], children: [], messages: [] };
  // oxlint-disable-next-line unicorn/no-thenable -- `then` is a field of the port, and a write is never awaited.
  return { write: "complete", run, fence, ...nothing, then: "continue", ...parts };
}

/** The completion of a claimed node: its entry and its arrivals at other nodes. */
export function completed(
  { run, item, token, slot }: Pick<ClaimedItem, "run" | "item" | "token" | "slot">,
  arrivals: readonly NodeArrival[],
  parts: CompleteParts = {},
): CompleteWrite {
  const fence = { item, token, ...(slot && { slot }) };
  return completeWrite(run, fence, { entries: [done(item)], arrivals, ...parts });
}

export type Committed = CompleteOutcome & { readonly status: "committed" };

export async function commit(store: Store, write: CompleteWrite): Promise<Committed> {
  const [outcome] = await store.write([write]);
  assert.equal(outcome.status, "committed");
  return outcome as Committed;
}

/** Starts a flow and commits its first turn. */
export async function startFlow(
  store: Store,
  worker: number,
  id: string,
  parts: CompleteParts,
  overrides: Partial<NewRun> = {},
): Promise<HeldTurn> {
  const held = await startHeld(store, worker, id, { ...FLOW, ...overrides });
  await commit(store, completeWrite(held.run, { turn: held.token, read: 0 }, parts));
  return held;
}

/** Starts a flow whose nodes `names` need only the input, so that they are ready. */
export function startWithNodes(
  store: Store,
  worker: number,
  id: string,
  ...names: readonly string[]
): Promise<HeldTurn> {
  const arrivals = names.map((name) => arrival(name, "input", 1, { cause: undefined }));
  return startFlow(store, worker, id, { arrivals });
}

export function claimNodes(store: Store, worker: number, count = 100): Promise<readonly ClaimedItem[]> {
  return claimItems(store, worker, [ROUTE], count);
}

/** Claims the ready nodes, which must be exactly these. */
export async function takeNodes<const N extends readonly string[]>(
  store: Store,
  worker: number,
  ...names: N
): Promise<{ [K in keyof N]: ClaimedItem }> {
  const items = await claimNodes(store, worker);
  assert.deepEqual(items.map(({ item }) => item).toSorted(), names.toSorted());
  return names.map((name) => items.find(({ item }) => item === name)) as unknown as { [K in keyof N]: ClaimedItem };
}

/** As `J 2/3`. */
export async function counters(store: Store, run: RunNumber): Promise<readonly string[]> {
  return (await store.readReadiness(run)).map(({ node, completed: got, required }) => `${node} ${got}/${required}`);
}

export async function statusOf(store: Store, id: string): Promise<string> {
  return (await getRun(store, id)).status;
}

export function endParts(then: EndedRunStatus, entries: readonly NewEntry[]): CompleteParts {
  // oxlint-disable-next-line unicorn/no-thenable -- `then` is a field of the port, and a write is never awaited.
  return { entries, then };
}

/** Items 0, 1, … of `saved`: as many entries as they need, from the write's first on. */
export function spreadOf(required: number, window: number, perEntry = 1_000, claims: readonly Claim[] = []) {
  const entries = Array.from({ length: Math.max(1, Math.ceil(required / perEntry)) }, (_, n): NewEntry => {
    return { type: "ItemsSpread", command: "saved[]", data: `{"from":${n * perEntry}}` };
  });
  const spread: NewSpread = {
    barrier: "saved",
    barrierNode: NODE,
    required,
    window,
    cause: 0,
    perEntry,
    node: NODE,
    claims,
  };
  return { entries, spread } as const;
}

/** The node that queues the next portion of `saved`. */
export const MORE = { item: "saved[more]", node: NODE } as const;

/** The next items of `saved` in queue `mail`, one per letter, with the letter as key; a space: no key. */
export function portionOf(letters: string): SpreadPortion {
  const node = { name: MAIL_ROUTE, priority: 0, slot: { queue: "mail" } };
  return { keys: letters.split("").map((key) => (key === " " ? null : key)), node, next: MORE };
}

/** The completion of `saved[more]`. */
export function completedPortion(
  { run, item, token }: Pick<ClaimedItem, "run" | "item" | "token">,
  letters: string,
): CompleteWrite {
  return completeWrite(run, { item, token }, { portion: { barrier: "saved", ...portionOf(letters) } });
}

/** The completion of item `saved[index]`, which queues the next one. */
export function completedItem(item: ClaimedItem, node: NodeItem = NODE): CompleteWrite {
  const index = indexOf(item.item);
  const arrivals = [arrival("saved", "saved[]", undefined, { index })];
  const entries = [done(item.item, `{"result":${index}}`)];
  return completed(item, arrivals, { entries, advances: [{ barrier: "saved", node }] });
}

export function indexOf(item: string): number {
  return Number(/\[(\d+)\]$/.exec(item)?.[1]);
}
