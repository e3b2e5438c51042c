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
  /** As a checkpoint stores it, once a step has composed it. */
  text: string | undefined;
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
  return spread === undefined
    ? sharedItem(node, parent, edge)
    : newItem(node, parent, edge, spread.index, spread.input);
}

/**
 * By the path of the parent, then by node. Runs of one graph take the same paths, so they share their items: two hashes and the
 * text of an item cost more than finding it. Emptied when it is full.
 */
const shared = new Map<Path, Map<string, StepItem>>();
let sharedCount = 0;
const MOST_SHARED = 1_024;

function sharedItem(node: string, parent: ItemParent, edge: number): StepItem {
  const found = shared.get(parent.path)?.get(node);
  if (found !== undefined && found.edge === edge && found.parent === parent.node) return found;
  const item = newItem(node, parent, edge);
  if (sharedCount >= MOST_SHARED) {
    shared.clear();
    sharedCount = 0;
  }
  const siblings = shared.get(parent.path);
  if (siblings === undefined) shared.set(parent.path, new Map([[node, item]]));
  else siblings.set(node, item);
  sharedCount += 1;
  return item;
}

function newItem(node: string, parent: ItemParent, edge: number, spread?: number, input?: unknown): StepItem {
  const from = { parent: parent.path, edge, spread };
  const [path, orderKey] = [pathOf(from, node), orderKeyOf(from)];
  return { node, path, orderKey, parent: parent.node, edge, spread, input, text: undefined };
}

/** As a checkpoint stores it. Keys are in canonical order, which saves sorting them. */
export function storedItem({ node, path, orderKey, parent, edge, spread, input }: StepItem): FrontierItemData {
  if (spread === undefined) return { edge, node, orderKey, parent, path };
  return { edge, input, node, orderKey, parent, path, spread };
}

export function readItem(stored: FrontierItemData): StepItem {
  return { spread: undefined, input: undefined, text: undefined, ...stored };
}
