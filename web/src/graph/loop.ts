// Loop: an edge from a node to itself, drawn as an arc beside the node: below it in a wide drawing, on its right on a phone.
//
// loop.L1. `loopRoom` is the room that the arcs and labels of a node take on that side. The layout keeps it free on both sides, so that
//   nothing else is drawn there.

import type { Direction, Point } from "./layout.ts";

/** The middle and the size of a node. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Loop {
  readonly path: string;
  readonly middle: Point;
}

const DEPTH = 22;
const LABEL_HEIGHT = 16;

/** loop.L1. `labels`: the width of the label of each loop. */
export function loopRoom(labels: readonly number[], direction: Direction): number {
  if (labels.length === 0) return 0;
  const depth = DEPTH * labels.length;
  return direction === "right" ? depth + LABEL_HEIGHT / 2 : depth + Math.max(...labels);
}

/**
 * The loop with this number, from 0, of its node: each one is drawn around those before it. On a phone its label, of width `label`, stands
 * beside the arc, which is shorter than the label.
 */
export function loopOf({ x, y, width, height }: Box, direction: Direction, number: number, label: number): Loop {
  const depth = DEPTH * (number + 1);
  const length = direction === "right" ? width : height;
  const half = Math.min(length * 0.42, length * 0.22 + number * 6);
  // The middle of such a curve is three quarters as deep as its control points.
  const reach = (depth * 4) / 3;
  if (direction === "right") {
    const bottom = y + height / 2;
    return {
      path: `M${round(x + half)} ${round(bottom)}C${round(x + half)} ${round(bottom + reach)} ${round(x - half)} ${round(bottom + reach)} ${round(x - half)} ${round(bottom)}`,
      middle: { x: round(x), y: round(bottom + depth) },
    };
  }
  const right = x + width / 2;
  return {
    path: `M${round(right)} ${round(y - half)}C${round(right + reach)} ${round(y - half)} ${round(right + reach)} ${round(y + half)} ${round(right)} ${round(y + half)}`,
    middle: { x: round(right + depth + label / 2), y: round(y) },
  };
}

const round = (value: number): number => Math.round(value * 10) / 10;
