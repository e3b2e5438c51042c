// Items: the names under which nodes of a flow are queued.

import { RepriseError } from "../base/index.ts";
import type { FlowBody } from "./definition.ts";
import { SPREAD_SUFFIX } from "../kernel/index.ts";
import type { Head } from "./regions.ts";

/** A head, or one item of the spread that is a head. */
export interface NodeRef {
  readonly item: string;
  readonly head: Head;
  /** Set for an item of a spread. */
  readonly index: number | undefined;
  /** The head has its value already, in the entry that the row names; only the nodes derived from it run again. */
  readonly rederives: boolean;
  /** Queues the next items of the spread that is the head (keys.K2). */
  readonly isPortion: boolean;
}

export { parseItemName, spreadItemName, type ParsedItemName } from "../kernel/index.ts";

/** `fetch[again]` */
export function rederiveItemName(head: string): string {
  return `${head}[again]`;
}

/** `saved[more]` */
export function portionItemName(spread: string): string {
  return `${spread}[more]`;
}

const ITEM = /^(.*)\[(\d+|again|more)\]$/s;

/** Undefined if the flow does not have it. */
export function findRef({ regions }: FlowBody, item: string): NodeRef | undefined {
  const [, name, which] = ITEM.exec(item) ?? [item, item];
  const rederives = which === "again";
  const isPortion = which === "more";
  const ofSpread = which !== undefined && !rederives;
  const head = regions.get(ofSpread ? `${name}${SPREAD_SUFFIX}` : (name as string));
  return head && { item, head, index: ofSpread && !isPortion ? Number(which) : undefined, rederives, isPortion };
}

/** Throws if the flow does not have it, because its code has changed since the run started. */
export function requireRef(body: FlowBody, item: string): NodeRef {
  const ref = findRef(body, item);
  if (ref !== undefined) return ref;
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    `Flow ${body.name} version ${body.version} has no node ${item}, which a run continues with. Restore the node, or give the changed flow another version.`,
  );
}

/** The targets whose arrivals a node reads before it starts: its own, and the lists of barriers it needs (rules.F7). */
export function inputTargets({ regions }: FlowBody, { item, head }: NodeRef): readonly string[] {
  const lists = head.region.head.needs.filter((need) => regions.get(need)?.region.head.work.kind === "barrier");
  return [item, ...lists];
}
