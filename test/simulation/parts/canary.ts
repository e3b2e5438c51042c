// Canary: expects that the function of an operation is called exactly once, which no system can guarantee. Faults must prove it
// wrong now and then; otherwise they do not reach the code they target. It is never chosen at random.

import { workflow } from "reprise";
import { expectOutput, type Part, type PartHost } from "../part.ts";

export function canaryPart({ chance }: PartHost): Part {
  const calls = new Map<number, number>();
  const ids = Array.from({ length: 4 }, (_, index) => `canary-${index}`);
  return {
    name: "canary",
    features: ["operation", "start"],
    definitions: (machine) => [
      workflow("canary", async (ctx, index: number) => {
        await ctx.run("sing", async () => {
          calls.set(index, (calls.get(index) ?? 0) + 1);
          await machine.work("sing");
        });
        return index;
      }),
    ],
    async drive(client) {
      await Promise.all(
        ids.map(async (id, index) => {
          await client.sleep(chance.below(3_000));
          await client.start("canary", index, id);
        }),
      );
    },
    *judge(ends) {
      for (const [index, id] of ids.entries()) {
        yield* expectOutput(id, ends.get(id), index);
        if (calls.get(index) !== 1) yield `canary: the operation of ${id} was called ${calls.get(index) ?? 0} times`;
      }
    },
  };
}
