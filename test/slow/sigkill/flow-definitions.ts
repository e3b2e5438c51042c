// A flow of two hundred nodes: layers whose nodes need some of the layer before, branches, and a spread.

import { appendFileSync } from "node:fs";
import { flow, typed } from "reprise";

const LAYERS = 12;
const WIDTH = 12;
export const SPREAD = 50;

/** Says that a node has run, where another process can read it. */
function ran(node: string): void {
  const file = process.env["RAN"];
  if (file !== undefined) appendFileSync(file, `${node}\n`);
}

function build(): any {
  let made: any = flow("two-hundred", { input: typed<number>() });
  let before = ["input"];
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const names = Array.from({ length: WIDTH }, (_, column) => `n${layer}_${column}`);
    for (const [column, name] of names.entries()) {
      const needs = [...new Set([before[column % before.length]!, before[(column * 5 + 1) % before.length]!])];
      made = made.action(name, needs, (_ctx: unknown, given: Record<string, number>) => {
        ran(name);
        return (Object.values(given).reduce((a, b) => a + b, layer * column) * 31) % 1_000_003;
      });
    }
    before = names;
  }
  return made
    .inline("list", before, (given: Record<string, number>) =>
      Array.from({ length: SPREAD }, (_, index) => (Object.values(given).reduce((a, b) => a + b, 0) + index) % 1_009),
    )
    .when(
      "even",
      ["list"],
      ({ list }: { list: number[] }) => list[0]! % 2 === 0,
      (branch: any) => branch.action("yes", ["list"], () => (ran("yes"), "even")),
    )
    .otherwise("even", (branch: any) => branch.action("no", ["list"], () => (ran("no"), "odd")))
    .spread(
      "each",
      ["list"],
      { concurrency: 7 },
      ({ list }: { list: number[] }) => list,
      (_ctx: unknown, item: number, index: number) => {
        ran(`each[${index}]`);
        return item * 2;
      },
    )
    .inline("sum", ["each"], ({ each }: { each: number[] }) => each.reduce((a, b) => a + b, 0))
    .output(["sum", "yes", "no"], (given: unknown) => given);
}

export const twoHundred = build();
