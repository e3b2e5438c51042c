// Item name: the names under which nodes of a flow are queued and recorded, read without the flow's definition.

/** The node that makes the output of a flow. */
export const FLOW_OUTPUT = "[output]";

/** `saved[]`: the list of the spread `saved`. */
export const SPREAD_SUFFIX = "[]";

/** `saved[17]` */
export function spreadItemName(spread: string, index: number): string {
  return `${spread}[${index}]`;
}

const ITEM = /^(.*)\[(\d+|again|more)\]$/s;

/** What the name of an item or of an entry's command says, without the flow's definition. */
export interface ParsedItemName {
  readonly node: string;
  /**
   * `spread`: the list of a spread, `saved[]`. `item`: one of its items. `portion`: `saved[more]`. `rederive`: `fetch[again]`.
   * `when`: `large?`.
   */
  readonly kind: "node" | "spread" | "item" | "portion" | "rederive" | "when";
  /** Set for an item of a spread. */
  readonly index: number | undefined;
}

export function parseItemName(name: string): ParsedItemName {
  if (name.endsWith(SPREAD_SUFFIX))
    return { node: name.slice(0, -SPREAD_SUFFIX.length), kind: "spread", index: undefined };
  if (name.endsWith("?")) return { node: name, kind: "when", index: undefined };
  const [, node = name, which] = ITEM.exec(name) ?? [];
  if (which === undefined) return { node, kind: "node", index: undefined };
  if (which === "more") return { node, kind: "portion", index: undefined };
  if (which === "again") return { node, kind: "rederive", index: undefined };
  return { node, kind: "item", index: Number(which) };
}
