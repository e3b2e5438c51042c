// Graphs: random graphs (test/graph/random-graph.ts). The expected result is the result in a world without faults.

import { buildGraph, double, drawGraph, slow, sub } from "../../graph/random-graph.ts";
import type { Part, PartHost, RunEnd } from "../part.ts";

export function graphsPart({ chance, expected }: PartHost): Part {
  const drawn = [drawGraph(chance.below(2 ** 31))];
  const idOf = (index: number): string => `graph-${index}`;
  return {
    name: "graphs",
    features: ["graph", "start"],
    definitions: (machine) => [
      ...drawn.map((one, index) =>
        buildGraph(one, { broken: false, slowMs: 200, aWhile: () => machine.work("call") }, idOf(index)),
      ),
      double,
      slow,
      sub,
    ],
    async drive(client) {
      await Promise.all(
        drawn.map(async (_one, index) => {
          const id = idOf(index);
          await client.sleep(chance.below(1_000));
          await client.start(id, {}, id);
          await client.sleep(chance.below(2_000));
          await client.tell(`resolve word of ${id}`, (core) =>
            core.get(id as never, id).resolve("word" as never, "said" as never),
          );
        }),
      );
    },
    *judge(ends) {
      for (const index of drawn.keys()) {
        const id = idOf(index);
        const end = ends.get(id);
        if (end === undefined) yield `I15 run ${id} was started and does not exist`;
        else if (expected !== undefined && graphOutcome(end) !== expected.get(id))
          yield `run ${id} gave ${graphOutcome(end)}, without faults ${expected.get(id)}`;
      }
    },
  };
}

/** How a graph ended; stacks and times are not compared. */
export function graphOutcome({ record, output, error }: RunEnd): string {
  if (record.status === "completed") return JSON.stringify(output);
  return `${record.status} ${/"message":"[^"]*"/.exec(error ?? "")?.[0] ?? ""}`;
}
