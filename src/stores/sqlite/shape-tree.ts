// Shape tree: finds the prepared statement of a call by the names of its values in their order (sqlite-rows.B1).

import type { SQLInputValue, StatementSync } from "node:sqlite";

/** Values that are bound to a statement. */
export type Bound = SQLInputValue[];

/** A tree of column names: where a list of names ends, there is its statement. Most nodes are followed by one name. */
export interface ShapeNode {
  lastName: string;
  lastNode: ShapeNode | undefined;
  readonly next: Map<string, ShapeNode>;
  statement: StatementSync | undefined;
}

export const newNode = (): ShapeNode => ({ lastName: "", lastNode: undefined, next: new Map(), statement: undefined });

export function step(node: ShapeNode, name: string): ShapeNode {
  if (node.lastName === name && node.lastNode !== undefined) return node.lastNode;
  const next = otherStep(node, name);
  node.lastName = name;
  node.lastNode = next;
  return next;
}

function otherStep(node: ShapeNode, name: string): ShapeNode {
  let next = node.next.get(name);
  if (next === undefined) node.next.set(name, (next = newNode()));
  return next;
}

/** Follows the names of the given values and collects the values. */
export function follow(from: ShapeNode, values: object, bound: Bound): ShapeNode {
  let node = from;
  for (const name in values) {
    node = step(node, name);
    bound.push((values as Record<string, SQLInputValue>)[name]!);
  }
  return node;
}
