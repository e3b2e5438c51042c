// RecordedNodes: a flow's journal, by node. What a retry has made void is left out.

import { decode, type PayloadLimits } from "../base/index.ts";
import type { Entry, EntryType } from "../kernel/index.ts";

export interface RecordedNode {
  readonly seq: number;
  readonly type: EntryType;
  readonly command: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const OF_NODES: ReadonlySet<EntryType> = new Set<EntryType>(["NodeCompleted", "NodeFailed", "NodeSkipped"]);

export class RecordedNodes {
  readonly input: unknown;
  readonly end: RecordedNode | undefined;
  readonly limits: PayloadLimits | undefined;
  /** Anything but the start has been written. */
  readonly hasStarted: boolean;
  readonly #nodes = new Map<string, RecordedNode>();
  readonly #kept = new Map<string, { readonly value: unknown }>();
  readonly #items = new Map<string, unknown[]>();

  constructor(entries: readonly Entry[]) {
    const counting = effectiveEntries(entries);
    this.input = counting[0]?.data["input"];
    const limit = counting[0]?.data["payloadLimit"];
    this.limits = typeof limit === "number" ? { maxBytes: limit } : undefined;
    this.hasStarted = counting.length > 1;
    const last = counting.at(-1);
    this.end = last?.type.startsWith("Run") === true && last.type !== "RunStarted" ? last : undefined;
    for (const entry of counting) {
      const { type, command, data } = entry;
      if (type === "ItemsSpread") this.#addItems(command, data);
      if (!OF_NODES.has(type)) continue;
      // A child that is retried by itself after its failure was settled tells its parent again; what counted is the first.
      if (this.#nodes.has(command)) continue;
      this.#nodes.set(command, entry);
      for (const [name, value] of Object.entries((data["kept"] ?? {}) as object)) this.#kept.set(name, { value });
    }
  }

  #addItems(command: string, data: RecordedNode["data"]): void {
    const items = this.#items.get(command) ?? [];
    items.push(...(data["items"] as readonly unknown[]));
    this.#items.set(command, items);
  }

  of(item: string): RecordedNode | undefined {
    return this.#nodes.get(item);
  }

  /** The value of a derived node, where it was kept. */
  kept(node: string): { readonly value: unknown } | undefined {
    const own = this.#nodes.get(node);
    if (own?.type === "NodeCompleted" && "result" in own.data) return { value: own.data["result"] };
    return this.#kept.get(node);
  }

  items(spread: string): readonly unknown[] {
    return this.#items.get(spread) ?? [];
  }

  get output(): { readonly value: unknown } | undefined {
    return this.end?.type === "RunCompleted" ? { value: this.end.data["output"] } : undefined;
  }

  findUnknown(isKnown: (item: string) => boolean): RecordedNode | undefined {
    for (const entry of this.#nodes.values()) if (!isKnown(entry.command)) return entry;
    return undefined;
  }
}

/** A retry makes void what the commit that failed the run has written, and nothing before it. */
export function effectiveEntries(entries: readonly Entry[]): readonly RecordedNode[] {
  const counting: RecordedNode[] = [];
  for (const { seq, type, command, data: text } of entries) {
    const data = decode(text) as RecordedNode["data"];
    if (type === "RunRetried") {
      const from = Number(data["from"]);
      while ((counting.at(-1)?.seq ?? 0) >= from) counting.pop();
    } else counting.push({ seq, type, command, data });
  }
  return counting;
}
