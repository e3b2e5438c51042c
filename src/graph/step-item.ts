// Step item: one activation of a node in a step.

import type { FrontierItemData } from "../kernel/index.ts";
import { orderKeyOf, pathOf, type OrderKey, type Path } from "./order-key.ts";

export interface StepItem {
  readonly node: string;
  readonly path: Path;
  readonly orderKey: OrderKey;
  /** The node whose edge led here, "" for START. */
  readonly parent: string;
  /** Which of its edges. */
  readonly edge: number;
  /** The index in a spread. */
  readonly spread: number | undefined;
  /** The item of a spread. */
  readonly input: unknown;
}

interface ItemParent {
  readonly node: string;
  readonly path: Path;
}

export function createItem(
  node: string,
  parent: ItemParent,
  edge: number,
  spread?: { readonly index: number; readonly input: unknown },
): StepItem {
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

/** As a checkpoint stores it. Keys are in canonical order, which saves sorting them. */
export function storedItem({ node, path, orderKey, parent, edge, spread, input }: StepItem): FrontierItemData {
  if (spread === undefined) return { edge, node, orderKey, parent, path };
  return { edge, input, node, orderKey, parent, path, spread };
}

export function readItem(stored: FrontierItemData): StepItem {
  return { spread: undefined, input: undefined, ...stored };
}
