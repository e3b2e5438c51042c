// Tasks: more concurrent tasks than one worker can run: they spread over the workers and survive their crashes.

import { task, workflow } from "reprise";
import { between, expectOutput, type Part, type PartHost } from "../part.ts";

export function tasksPart({ chance, scale }: PartHost): Part {
  const counts = Array.from({ length: Math.max(1, Math.round(2 * scale)) }, () => between(chance, 3, 10));
  const idOf = (index: number): string => `fans-out-${index}`;
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
  return {
    name: "tasks",
    features: ["task", "all", "start"],
    definitions: (machine) => {
      // Long enough for a takeover.
      const long = task("long task", async (_ctx, n: number) => {
        for (let times = 0; times < 4; times += 1) await machine.work("long");
        return n;
      });
      const fansOut = workflow("fans-out", (ctx, count: number) =>
        Promise.all(numbers(count).map((n) => ctx.task(long, n))),
      );
      return [long, fansOut];
    },
    async drive(client) {
      await Promise.all(
        counts.map(async (count, index) => {
          await client.sleep(chance.below(1_000));
          await client.start("fans-out", count, idOf(index));
        }),
      );
    },
    *judge(ends) {
      for (const [index, count] of counts.entries())
        yield* expectOutput(idOf(index), ends.get(idOf(index)), numbers(count));
    },
  };
}
