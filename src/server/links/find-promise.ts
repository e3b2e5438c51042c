// Find promise: whether a promise of a run is open, or how it was settled.

import type { EpochMs } from "../../base/index.ts";
import { decodeData, hasEnded, promiseIdOf, type Entry, type RunRecord, type Store } from "../../kernel/index.ts";

export type PromiseState =
  | {
      readonly state: "open";
      readonly show: unknown;
      readonly since: EpochMs;
      readonly deadline: EpochMs | undefined;
    }
  | {
      readonly state: "settled";
      readonly how: "resolved" | "rejected" | "timed_out";
      readonly value?: unknown;
      readonly by?: string | undefined;
      readonly reason?: string | undefined;
      /** Undefined: the run has not recorded it yet. */
      readonly at: EpochMs | undefined;
    }
  /** The run has not asked for it yet. */
  | { readonly state: "awaited" }
  /** The run has ended without asking. */
  | { readonly state: "gone" };

const PAGE = 500;

/** The state of a promise, newest facts first: what waits in the inbox, what the run waits for, what its journal says. */
export async function findPromise(
  store: Store,
  record: RunRecord,
  port: string,
  key: string | undefined,
): Promise<PromiseState> {
  const id = promiseIdOf({}, port, key, "approval link");
  for (const { type, target, data } of await store.readInbox(record.run, record.read))
    if (target === id && (type === "PromiseResolved" || type === "PromiseRejected"))
      return settled(type, data, undefined);
  const open = (await store.readRunWork(record.run))?.promises.find((one) => one.name === port && one.key === key);
  if (open !== undefined) return openState(store, record, open);
  for (let after = 0; ;) {
    const entries = await store.readJournal(record.run, after, PAGE);
    for (const entry of entries) {
      const found = settledBy(entry, id, entries);
      if (found !== undefined) return found;
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < PAGE) break;
    after = last.seq;
  }
  return { state: hasEnded(record.status) ? "gone" : "awaited" };
}

async function openState(
  store: Store,
  { run }: RunRecord,
  { seq, at }: { readonly seq: number; readonly at: EpochMs },
): Promise<PromiseState> {
  const [entry] = await store.readJournal(run, seq - 1, 1);
  const { show, timeout } = entry?.type === "PromiseCreated" ? decodeData(entry.type, entry.data) : {};
  return { state: "open", show, since: at, deadline: timeout === undefined ? undefined : at + timeout };
}

function settledBy(entry: Entry, id: string, page: readonly Entry[]): PromiseState | undefined {
  const { type, data, at, command } = entry;
  if (type === "PromiseResolved" || type === "PromiseRejected")
    return decodeData(type, data).promiseId === id ? settled(type, data, at) : undefined;
  if (type !== "PromiseTimedOut") return undefined;
  // The entry of a timeout names its command only.
  const created = page.find((one) => one.type === "PromiseCreated" && one.command === command);
  const isIt = created?.type === "PromiseCreated" && decodeData("PromiseCreated", created.data).promiseId === id;
  return isIt ? { state: "settled", how: "timed_out", at } : undefined;
}

function settled(type: "PromiseResolved" | "PromiseRejected", data: string, at: EpochMs | undefined): PromiseState {
  const decoded = decodeData(type, data);
  const { by, reason } = decoded;
  const how = type === "PromiseResolved" ? "resolved" : "rejected";
  return { state: "settled", how, by, reason, at, ...("value" in decoded && { value: decoded.value }) };
}
