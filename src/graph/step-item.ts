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
  const { path, orderKey } =
    spread === undefined ? placeOf(parent.path, edge, node) : newPlace(parent.path, edge, node, spread.index);
  return { node, path, orderKey, parent: parent.node, edge, spread: spread?.index, input: spread?.input };
}

interface ItemPlace {
  readonly path: Path;
  readonly orderKey: OrderKey;
}

/** Runs of one graph take the same paths, and two hashes cost more than finding them. Emptied when it is full. */
const places = new Map<string, ItemPlace>();
const MOST_PLACES = 1_024;

function placeOf(parent: Path, edge: number, node: string): ItemPlace {
  const name = `${parent}${edge}/${node}`;
  let place = places.get(name);
  if (place !== undefined) return place;
  if (places.size >= MOST_PLACES) places.clear();
  places.set(name, (place = newPlace(parent, edge, node, undefined)));
  return place;
}

function newPlace(parent: Path, edge: number, node: string, spread: number | undefined): ItemPlace {
  const from = { parent, edge, spread };
  return { path: pathOf(from, node), orderKey: orderKeyOf(from) };
}

/** As a checkpoint stores it. Keys are in canonical order, which saves sorting them. */
export function storedItem({ node, path, orderKey, parent, edge, spread, input }: StepItem): FrontierItemData {
  if (spread === undefined) return { edge, node, orderKey, parent, path };
  return { edge, input, node, orderKey, parent, path, spread };
}

export function readItem(stored: FrontierItemData): StepItem {
  return { spread: undefined, input: undefined, ...stored };
}
