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
  readonly again: boolean;
}

/** `saved[17]` */
export function itemOf(spread: string, index: number): string {
  return `${spread}[${index}]`;
}

/** `fetch[again]` */
export function againItem(head: string): string {
  return `${head}[again]`;
}

const ITEM = /^(.*)\[(\d+|again)\]$/s;

/** Undefined where the flow does not have it. */
export function findRef({ regions }: FlowBody, item: string): NodeRef | undefined {
  const [, name, which] = ITEM.exec(item) ?? [item, item];
  const again = which === "again";
  const isItem = which !== undefined && !again;
  const head = regions.get(isItem ? `${name}${SPREAD_SUFFIX}` : (name as string));
  return head && { item, head, index: isItem ? Number(which) : undefined, again };
}

/** Refuses what the flow does not have: its code has changed under the run. */
export function refOf(body: FlowBody, item: string): NodeRef {
  const ref = findRef(body, item);
  if (ref !== undefined) return ref;
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    `Flow ${body.name} version ${body.version} has no node ${item}, which one of its runs is to go on with. Bring it back, or give the changed flow another version.`,
  );
}

/** What has to be read before a node can start: what came for it, and the lists of barriers it needs (F7). */
export function targetsOf({ regions }: FlowBody, { item, head }: NodeRef): readonly string[] {
  const lists = head.region.head.needs.filter((need) => regions.get(need)?.region.head.work.kind === "barrier");
  return [item, ...lists];
}
