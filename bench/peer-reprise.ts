// Reprise as a contender, with its defaults. A job of the queue is a run without steps.

import { createEngine, queue, workflow } from "reprise";
import { steps } from "./definitions.ts";
import { chain } from "./graph-definitions.ts";
import type { Contender, ContenderOptions } from "./peer-contender.ts";

export async function open({ url, queueConcurrency }: ContenderOptions): Promise<Contender> {
  const jobs = queue("jobs", { concurrency: queueConcurrency });
  const job = workflow("job", { queue: jobs }, async (_ctx, index: number) => index);
  const store = url.startsWith("postgres") ? url : `sqlite:${url}`;
  const engine = await createEngine({ store, definitions: [steps, chain, job], durability: "full" });
  return {
    async run(count) {
      const run = await engine.start(steps, { count, waitMs: 0 });
      return run.result();
    },
    async chain() {
      const run = await engine.start(chain, {});
      return run.result() as Promise<number>;
    },
    async enqueue(indexes, onEnd) {
      await Promise.all(
        indexes.map(async (index) => {
          const run = await engine.start(job, index);
          // The result arrives after the commit that ends the run. It is rejected if the time is up before.
          void run.result().then(onEnd, () => undefined);
        }),
      );
    },
    close: () => engine.close(),
  };
}
