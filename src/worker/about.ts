// What this worker says about itself to whoever looks at the store.

import type { WorkerAbout } from "../kernel/index.ts";
import type { Served } from "./served.ts";
import type { WorkerOptions } from "./worker-options.ts";

export function aboutText(options: WorkerOptions, { definitions, items }: Served): string {
  const { host, pid, queues, concurrency, leaseMs, outbox } = options;
  const about: WorkerAbout = {
    host,
    pid,
    definitions,
    items,
    destinations: [...(outbox ?? new Map<string, unknown>()).keys()],
    ...(queues && { queues }),
    labels: [],
    leaves: [],
    concurrency,
    leaseMs,
  };
  return JSON.stringify(about);
}
