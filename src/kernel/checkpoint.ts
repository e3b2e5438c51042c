// Checkpoints: where a graph stands after each step, as a function of its journal (A1).
//
// CP1. A checkpoint says nothing the journal does not: dropped, its row can be made again, byte for byte.
// CP2. A step's entry holds what the step changed. Step 0 holds the whole first state, so that no code is needed to fold.
// CP3. The whole state is kept with a row once the changes since would take longer to read than the state itself: the
//      store grows with what changes, and reading any step is bounded.
//      So does the first row of a run, which for a fork is the step it begins from (FK2).
// CP4. With the whole state goes what the run was told and later steps may still ask for: who reads from here on need not
//      look further back.

import { decode, encode, RepriseError } from "../base/index.ts";
import { forkedOf } from "./fork.ts";
import { CHAIN_START, chainAfter, isCancel, type Entry, type EntryType } from "./journal.ts";
import { layOver, type ObjectText } from "./member-texts.ts";

/** The state of a graph after a step (seed 003). */
export interface NewCheckpoint {
  readonly step: number;
  /** The entry that holds what the step changed. */
  readonly seq: number;
  /** The chain after that entry: what follows can be checked without what came before. */
  readonly chain: string;
  /** Unique in the store, and (run, step) is (C2). */
  readonly key: string;
  readonly label: string | undefined;
  /** The whole state, now and then (CP3): the text `wholeText` makes. */
  readonly state: string | undefined;
}

/** What a step changed; channels in none of the three stayed as they were. */
export interface Delta {
  readonly append?: Readonly<Record<string, readonly unknown[]>>;
  readonly merge?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly set?: Readonly<Record<string, unknown>>;
}

/** The canonical text of each channel, by name in ascending order. */
export type ChannelTexts = ReadonlyMap<string, string>;

/** CP4. An entry from outside that stays of use. */
export interface Told {
  readonly type: EntryType;
  readonly data: Readonly<Record<string, unknown>>;
}

const TOLD: ReadonlySet<EntryType> = new Set<EntryType>([
  "PromiseResolved",
  "PromiseRejected",
  "CancelRequested",
  "DeadlineExceeded",
]);

export function isTold(type: EntryType): boolean {
  return TOLD.has(type);
}

/** V4. What of it counts in the next life of a run; `retried` is the data of its `RunRetried` entry. */
export function toldAfter(told: readonly Told[], retried: Readonly<Record<string, unknown>>): readonly Told[] {
  const reopened = (retried["reopened"] ?? []) as readonly unknown[];
  return told.filter(
    ({ type, data }) => !isCancel(type) && !(type === "PromiseRejected" && reopened.includes(data["promiseId"])),
  );
}

/** M2. Of channels that keys were laid over. */
const objectTexts = new WeakMap<ChannelTexts, ReadonlyMap<string, ObjectText>>();

/** The state before, with a delta applied. No code of the user's takes part. What did not change is not written anew. */
export function applyDelta(before: ChannelTexts, { append, merge, set }: Delta): ChannelTexts {
  let after = new Map(before);
  for (const name in append) after.set(name, appendText(after.get(name) ?? "[]", append[name]!));
  let known = objectTexts.get(before);
  if (merge !== undefined) {
    const objects = new Map(known);
    for (const name in merge) {
      const object = layOver(after.get(name) ?? "{}", merge[name]!, objects.get(name));
      objects.set(name, object);
      after.set(name, object.text);
    }
    known = objects;
  }
  for (const name in set) after.set(name, encode(set[name]));
  if (after.size > before.size) after = new Map([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
  if (known !== undefined) objectTexts.set(after, known);
  return after;
}

/** The list's text is extended, not written anew. */
export function appendText(list: string, items: readonly unknown[]): string {
  if (items.length === 0) return list;
  const added = encode(items);
  return list === "[]" ? added : `${list.slice(0, -1)},${added.slice(1)}`;
}

/** Its canonical text in parts: what did not change is not joined again. */
export function stateParts(texts: ChannelTexts): readonly string[] {
  const parts: string[] = [];
  for (const [name, text] of asWritten(texts))
    parts.push(`${parts.length === 0 ? "{" : ","}${JSON.stringify(name)}:`, text);
  parts.push(parts.length === 0 ? "{}" : "}");
  return parts;
}

/** As the codec writes them: a name made only of `$` carries one more, and that can change the order. */
function asWritten(texts: ChannelTexts): Iterable<readonly [string, string]> {
  for (const name of texts.keys())
    if (isDollars(name)) {
      const entries = Array.from(texts, ([key, text]) => [isDollars(key) ? `$${key}` : key, text] as const);
      return entries.sort(([a], [b]) => (a < b ? -1 : 1));
    }
  return texts;
}

function isDollars(name: string): boolean {
  return name.startsWith("$") && /^\$+$/.test(name);
}

export function wholeText(told: readonly Told[], parts: readonly string[]): string {
  return `{"state":${parts.join("")},"told":${encode(told.map(({ type, data }) => ({ type, data })))}}`;
}

export function readWhole(text: string): { readonly told: readonly Told[]; readonly texts: ChannelTexts } {
  const { state, told } = decode(text) as { state: Record<string, unknown>; told: readonly Told[] };
  // Sorted: an object has keys that look like numbers first.
  const names = Object.keys(state).sort();
  return { told, texts: new Map(names.map((name) => [name, encode(state[name])])) };
}

/** Below this much it is not worth the row: small states would be kept whole at every other step. */
const WHOLE_AT_LEAST = 16_384;

/** CP3. Lengths in characters; `unkept` counts the entries since the last whole state, this step's included. */
export function isWholeDue(step: number, unkept: number, stateLength: number): boolean {
  return step === 0 || unkept > stateLength + WHOLE_AT_LEAST;
}

export function lengthOf(texts: ChannelTexts): number {
  let sum = 2;
  for (const [name, text] of texts) sum += name.length + text.length + 4;
  return sum;
}

/** Makes checkpoints from entries, in order (CP1). */
export class CheckpointFold {
  #texts: ChannelTexts = new Map();
  #told: readonly Told[] = [];
  #unkept = 0;
  #isFirst = true;

  get texts(): ChannelTexts {
    return this.#texts;
  }

  /** The checkpoint that stands with this entry; `chain` is the one after it. */
  see({ seq, type, data }: Pick<Entry, "seq" | "type" | "data">, chain: string): NewCheckpoint | undefined {
    const forked = type === "RunStarted" && data.includes('"forked"') ? forkedOf(decode(data)) : undefined;
    if (forked?.told !== undefined) this.#told = forked.told;
    if (isTold(type)) this.#told = [...this.#told, { type, data: decode(data) as Told["data"] }];
    if (type === "RunRetried") this.#told = toldAfter(this.#told, decode(data) as Told["data"]);
    if (type !== "StepCommitted") return undefined;
    const { step, key, label, delta } = decode(data) as StepData;
    if (typeof step !== "number" || typeof key !== "string")
      throw new RepriseError("STORE_CORRUPT", `Entry ${seq} names no step; run reprise doctor.`);
    this.#texts = applyDelta(this.#texts, delta);
    this.#unkept += data.length;
    const isWhole = this.#isFirst || isWholeDue(step, this.#unkept, lengthOf(this.#texts));
    this.#isFirst = false;
    if (isWhole) this.#unkept = 0;
    const state = isWhole ? wholeText(this.#told, stateParts(this.#texts)) : undefined;
    return { step, seq, chain, key, label, state };
  }
}

interface StepData {
  readonly step: number;
  readonly key: string;
  readonly label?: string;
  readonly delta: Delta;
}

/** CP1. All checkpoints of a whole journal. */
export function rebuildCheckpoints(entries: readonly Entry[]): readonly NewCheckpoint[] {
  const fold = new CheckpointFold();
  let chain = CHAIN_START;
  return entries.flatMap((entry) => {
    chain = chainAfter(chain, entry.type, entry.command, entry.data);
    return fold.see(entry, chain) ?? [];
  });
}
