// The measured flows. Their nodes do almost nothing, so that the engine's own work is measured.

import { flow, typed } from "reprise";

const next = (_ctx: unknown, given: Readonly<Record<string, number>>): number => Object.values(given)[0]! + 1;

export const FLOW_LENGTH = 10;
/** Ten sequential actions. */
export const pipeline = flow("pipeline", { input: typed<number>() })
  .action("a", ["input"], next)
  .action("b", ["a"], next)
  .action("c", ["b"], next)
  .action("d", ["c"], next)
  .action("e", ["d"], next)
  .action("f", ["e"], next)
  .action("g", ["f"], next)
  .action("h", ["g"], next)
  .action("i", ["h"], next)
  .action("j", ["i"], next)
  .output(["j"], ({ j }) => j);

export const DIAMOND_NODES = 5;
/** One action, three parallel ones, and one that waits for them. */
export const diamond = flow("diamond", { input: typed<number>() })
  .action("s", ["input"], next)
  .action("x", ["s"], next)
  .action("y", ["s"], next)
  .action("z", ["s"], next)
  .action("join", ["x", "y", "z"], (_ctx, { x, y, z }) => x + y + z)
  .output(["join"], ({ join }) => (join > 0 ? DIAMOND_NODES : 0));

/** As many items as the input says, then their sum. */
export const wide = flow("wide", { input: typed<number>() })
  .spread(
    "squares",
    ["input"],
    ({ input }) => Array.from({ length: input }, (_, index) => index),
    (_ctx, item) => item * item,
  )
  .inline("sum", ["squares"], ({ squares }) => squares.reduce((sum, value) => sum + value, 0))
  .output(["squares", "sum"], ({ squares, sum }) => (sum >= 0 ? squares.length : 0));
