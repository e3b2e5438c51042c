// Replays: random nested promises whose results depend on the order of completions (test/replay/random-program.ts). Their results
// cannot be predicted: the check is that a replay gives the same result, and that they end.

import { CALLED, definitionOf, PORTS, programOf, SIGNALS } from "../../replay/random-program.ts";
import { between, type Part, type PartHost } from "../part.ts";

export function replaysPart({ chance }: PartHost): Part {
  const program = programOf(chance, between(chance, 4, 12));
  const count = between(chance, 1, 2);
  const ids = Array.from({ length: count }, (_, index) => `replayed-${index}`);
  return {
    name: "replays",
    features: ["replay", "signal", "cancel", "start"],
    definitions: () => [definitionOf(program), ...CALLED],
    async drive(client) {
      await Promise.all(
        ids.map(async (id) => {
          await client.start("program", undefined, id);
          const run = "program" as never;
          for (const port of PORTS) {
            await client.sleep(chance.below(300));
            await client.tell(`resolve ${port} of ${id}`, (core) =>
              core.get(run, id).resolve(port as never, chance.below(100) as never),
            );
          }
          for (let times = 0; times < 3; times += 1)
            for (const name of SIGNALS) {
              await client.sleep(chance.below(200));
              const options = { dedupId: `${name} ${times}` };
              await client.tell(`signal ${name} to ${id}`, (core) =>
                core.get(run, id).signal(name as never, times as never, options),
              );
            }
          await client.sleep(chance.below(500));
          await client.tell(`cancel ${id}`, (core) => core.get(run, id).cancel());
        }),
      );
    },
    *judge(ends) {
      for (const id of ids) if (!ends.has(id)) yield `I15 run ${id} was started and does not exist`;
    },
  };
}
