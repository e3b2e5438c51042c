// Flows: random flows (test/flow/random-flow.ts) with values, skips, spreads and calls, and an oracle for their results.

import { build, oracle, randomFlow } from "../../flow/random-flow.ts";
import { between, type Part, type PartHost } from "../part.ts";

export function flowsPart({ chance, scale }: PartHost): Part {
  const specs = Array.from({ length: Math.max(1, Math.round(2 * scale)) }, () =>
    randomFlow(chance, chance.happens(0.2)),
  );
  const inputs = specs.map(() => between(chance, 0, 1_000));
  const idOf = (index: number): string => `flow-${index}`;
  return {
    name: "flows",
    features: ["flow", "spread", "call", "start"],
    definitions: (machine) =>
      specs.flatMap((spec, index) => {
        const made = build(idOf(index), spec, { work: (name) => machine.work(name) });
        return [made.flow, ...made.others];
      }),
    async drive(client) {
      await Promise.all(
        specs.map(async (_spec, index) => {
          await client.sleep(chance.below(1_500));
          const id = idOf(index);
          await client.start(id, inputs[index], id);
        }),
      );
    },
    *judge(ends) {
      for (const [index, spec] of specs.entries()) {
        const id = idOf(index);
        const end = ends.get(id);
        if (end === undefined) {
          yield `I15 run ${id} was started and does not exist`;
          continue;
        }
        const expected = oracle(spec, inputs[index]!);
        const { status } = end.record;
        const may = [...(expected.output === undefined ? [] : ["completed"]), ...(expected.mayFail ? ["failed"] : [])];
        if (!may.includes(status))
          yield `run ${id} ended as ${status}, expected ${may.join(" or ")}: ${end.error ?? ""}`;
        else if (status === "completed" && end.output !== expected.output)
          yield `run ${id} gave ${String(end.output)}, expected ${expected.output}`;
      }
    },
  };
}
