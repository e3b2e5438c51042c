// live: readers of the change feed in another process. From the commit that ends a run until the last reader has the event, and the memory
// that the readers cost the server.

import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { history } from "./definitions.ts";
import { createServer } from "reprise/server";
import { scaled, type Workload } from "./workload.ts";

const READERS = fileURLToPath(new URL("live-readers.ts", import.meta.url));
const MIB = 1_048_576;

const now = (): number => performance.timeOrigin + performance.now();

export const liveWorkload: Workload = {
  name: "live",
  variants: ["10 readers", "500 readers"],
  warmUp: 0,
  hasNoRate: true,
  async run(rig, plan) {
    const [readers, runs] = [scaled(Number.parseInt(plan.variant, 10), plan), scaled(100, plan)];
    const listening = await createServer(rig.engine, { limits: { requestsPerSecond: 10_000 } }).listen({ port: 0 });
    const ended = new Map<string, number>();
    const memory = async (): Promise<number> => {
      globalThis.gc?.();
      await wait(200);
      return process.memoryUsage().rss;
    };
    const before = await memory();
    const child = fork(READERS, [listening.url, String(readers)], { execArgv: ["--conditions=reprise-source"] });
    await once(child, "message");
    const connected = await memory();
    const latenciesMs: number[] = [];
    const seen = new Map<string, number>();
    child.on("message", ({ id, at }: { readonly id: string; readonly at: number }) => seen.set(id, at));
    const startedAt = performance.now();
    for (let index = 0; index < runs; index += 1) {
      const id = `live-${index}`;
      const run = await rig.engine.start(history, { count: 0 }, { id });
      await run.terminate();
      ended.set(id, now());
      await wait(20);
    }
    await wait(1_000);
    const elapsedMs = performance.now() - startedAt;
    const after = await memory();
    for (const [id, at] of seen) latenciesMs.push(Math.max(0, at - ended.get(id)!));
    child.kill();
    await listening.close();
    return {
      runs,
      steps: runs,
      elapsedMs,
      latenciesMs,
      extra: {
        readersMiB: (connected - before) / MIB,
        afterMiB: (after - before) / MIB,
        p95Ms: latenciesMs.toSorted((a, b) => a - b)[Math.floor(latenciesMs.length * 0.95)] ?? -1,
        seen: latenciesMs.length,
      },
    };
  },
};
