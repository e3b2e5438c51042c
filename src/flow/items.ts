// Items: what stands in the queue for a node of a flow, by name.

import { RepriseError } from "../base/index.ts";
import type { FlowBody } from "./definition.ts";
import { SPREAD_SUFFIX } from "./node.ts";
import type { Head } from "./regions.ts";

/** A head, or one item of the spread that is a head. */
export interface NodeRef {
  readonly item: string;
  readonly head: Head;
  /** Set for an item of a spread. */
  readonly index: number | undefined;
  /** Its value stands in the entry its row names; only what follows from it is derived again. */
  readonly rederives: boolean;
}

/** `saved[17]` */
export function spreadItemName(spread: string, index: number): string {
  return `${spread}[${index}]`;
}

/** `fetch[again]` */
export function rederiveItemName(head: string): string {
  return `${head}[again]`;
}

const ITEM = /^(.*)\[(\d+|again)\]$/s;

/** What the name of an item or of an entry's command says, without the flow's definition. */
export interface ParsedItemName {
  readonly node: string;
  /** `spread`: the list of a spread, `saved[]`. `item`: one of its items. `rederive`: `fetch[again]`. `when`: `large?`. */
  readonly kind: "node" | "spread" | "item" | "rederive" | "when";
  /** Set for an item of a spread. */
  readonly index: number | undefined;
}

export function parseItemName(name: string): ParsedItemName {
  if (name.endsWith(SPREAD_SUFFIX))
    return { node: name.slice(0, -SPREAD_SUFFIX.length), kind: "spread", index: undefined };
  if (name.endsWith("?")) return { node: name, kind: "when", index: undefined };
  const [, node = name, which] = ITEM.exec(name) ?? [];
  if (which === undefined) return { node, kind: "node", index: undefined };
  if (which === "again") return { node, kind: "rederive", index: undefined };
  return { node, kind: "item", index: Number(which) };
}

/** Undefined where the flow does not have it. */
export function findRef({ regions }: FlowBody, item: string): NodeRef | undefined {
  const [, name, which] = ITEM.exec(item) ?? [item, item];
  const again = which === "again";
  const isItem = which !== undefined && !again;
  const head = regions.get(isItem ? `${name}${SPREAD_SUFFIX}` : (name as string));
  return head && { item, head, index: isItem ? Number(which) : undefined, rederives: again };
}

/** Refuses what the flow does not have: its code has changed under the run. */
export function requireRef(body: FlowBody, item: string): NodeRef {
  const ref = findRef(body, item);
  if (ref !== undefined) return ref;
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    `Flow ${body.name} version ${body.version} has no node ${item}, which one of its runs is to go on with. Bring it back, or give the changed flow another version.`,
  );
}

/** What has to be read before a node can start: what came for it, and the lists of barriers it needs (F7). */
export function inputTargets({ regions }: FlowBody, { item, head }: NodeRef): readonly string[] {
  const lists = head.region.head.needs.filter((need) => regions.get(need)?.region.head.work.kind === "barrier");
  return [item, ...lists];
}
