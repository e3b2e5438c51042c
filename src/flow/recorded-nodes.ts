// Recorded nodes: a flow's journal, by node, without the entries that a retry made void.

import type { PayloadLimits } from "../base/index.ts";
import { decodeEntry, errorOf, isOfType, type DecodedEntry, type Entry } from "../kernel/index.ts";

import { spreadItemName } from "./items.ts";
import { SPREAD_SUFFIX } from "./node.ts";

/** The entries that end a node of a flow. */
export type NodeEndEntry = DecodedEntry<"NodeCompleted" | "NodeFailed" | "NodeSkipped">;
export type FlowEndEntry = DecodedEntry<"RunCompleted" | "RunFailed" | "RunCancelled">;

export function isNodeEnd(entry: DecodedEntry): entry is NodeEndEntry {
  return isOfType(entry, "NodeCompleted", "NodeFailed", "NodeSkipped");
}

export class RecordedNodes {
  readonly input: unknown;
  readonly end: FlowEndEntry | undefined;
  readonly limits: PayloadLimits | undefined;
  /** The journal has more than the entry of the start. */
  readonly hasStarted: boolean;
  readonly #nodes = new Map<string, NodeEndEntry>();
  readonly #kept = new Map<string, { readonly value: unknown }>();
  readonly #items = new Map<string, unknown[]>();
  readonly #calls = new Map<string, string>();

  constructor(entries: readonly Entry[]) {
    const effective = effectiveFlowEntries(entries);
    const [started] = effective;
    if (started?.type === "RunStarted") {
      const { input, payloadLimit } = started.data;
      this.input = input;
      this.limits = payloadLimit === undefined ? undefined : { maxBytes: payloadLimit };
    }
    this.hasStarted = effective.length > 1;
    const last = effective.at(-1);
    this.end = last !== undefined && isOfType(last, "RunCompleted", "RunFailed", "RunCancelled") ? last : undefined;
    for (const entry of effective) {
      if (entry.type === "ItemsSpread") this.#addItems(entry.command, entry.data.items);
      if (entry.type === "ChildWorkflowInitiated" && entry.data.given !== undefined)
        this.#calls.set(entry.command, entry.data.given);
      // A child that is retried on its own after its failure was settled answers its parent again; the first answer counts.
      if (!isNodeEnd(entry) || this.#nodes.has(entry.command)) continue;
      this.#nodes.set(entry.command, entry);
      if (entry.type !== "NodeCompleted") continue;
      for (const [name, value] of Object.entries(entry.data.kept ?? {})) this.#kept.set(name, { value });
    }
  }

  #addItems(command: string, added: readonly unknown[]): void {
    const items = this.#items.get(command) ?? [];
    items.push(...added);
    this.#items.set(command, items);
  }

  of(item: string): NodeEndEntry | undefined {
    return this.#nodes.get(item);
  }

  /** Digest of the input that a call passed to its child; undefined if there is no child, or an earlier version wrote it. */
  callInput(node: string): string | undefined {
    return this.#calls.get(node);
  }

  /** The value of a derived node, if it was kept. */
  kept(node: string): { readonly value: unknown } | undefined {
    const own = this.#nodes.get(node);
    if (own?.type === "NodeCompleted" && "result" in own.data) return { value: own.data.result };
    return this.#kept.get(node);
  }

  items(spread: string): readonly unknown[] {
    return this.#items.get(spread) ?? [];
  }

  /** The list of a barrier; undefined if its spread was skipped or has not ended, or an item has not. */
  list(barrier: string, { settle }: { readonly settle: boolean }): readonly unknown[] | undefined {
    if (this.#nodes.get(`${barrier}${SPREAD_SUFFIX}`)?.type !== "NodeCompleted") return undefined;
    const list: unknown[] = [];
    for (const index of this.items(`${barrier}${SPREAD_SUFFIX}`).keys()) {
      const entry = this.#nodes.get(spreadItemName(barrier, index));
      if (entry?.type === "NodeCompleted")
        list.push(settle ? { status: "fulfilled", value: entry.data.result } : entry.data.result);
      else if (entry?.type === "NodeFailed" && settle) list.push({ status: "rejected", reason: errorOf(entry.data) });
      else return undefined;
    }
    return list;
  }

  get output(): { readonly value: unknown } | undefined {
    return this.end?.type === "RunCompleted" ? { value: this.end.data.output } : undefined;
  }

  findUnknown(isKnown: (item: string) => boolean): NodeEndEntry | undefined {
    for (const entry of this.#nodes.values()) if (!isKnown(entry.command)) return entry;
    return undefined;
  }
}

/** A retry makes void what the failing commit has written, and nothing before it (flow.T1). */
export function effectiveFlowEntries(entries: readonly Entry[]): readonly DecodedEntry[] {
  const effective: DecodedEntry[] = [];
  for (const entry of entries) {
    const decoded = decodeEntry(entry);
    if (decoded.type === "RunRetried") while ((effective.at(-1)?.seq ?? 0) >= decoded.data.from) effective.pop();
    else effective.push(decoded);
  }
  return effective;
}
