// Items: one activation of a node within a step.

import { orderKeyOf, pathOf, type OrderKey, type Path } from "./order-key.ts";

export interface Item {
  readonly node: string;
  readonly path: Path;
  readonly orderKey: OrderKey;
  /** The node that led here, "" for START; which of its edges, and which item of a spread. */
  readonly parent: string;
  readonly edge: number;
  readonly spread: number | undefined;
  /** What a spread gave it. */
  readonly input: unknown;
}

interface Parent {
  readonly node: string;
  readonly path: Path;
}

export function itemOf(
  node: string,
  parent: Parent,
  edge: number,
  spread?: { readonly index: number; readonly input: unknown },
): Item {
  const from = { parent: parent.path, edge, spread: spread?.index };
  return {
    node,
    path: pathOf(from, node),
    orderKey: orderKeyOf(from),
    parent: parent.node,
    edge,
    spread: spread?.index,
    input: spread?.input,
  };
}

/** As its checkpoint keeps it; keys in the order they are written in, which spares sorting them. */
export function storedItem({ node, path, orderKey, parent, edge, spread, input }: Item): object {
  if (spread === undefined) return { edge, node, orderKey, parent, path };
  return { edge, input, node, orderKey, parent, path, spread };
}

export function itemFrom(stored: Readonly<Record<string, unknown>>): Item {
  return { spread: undefined, input: undefined, ...stored } as unknown as Item;
}
