// What this worker says about itself to whoever looks at the store.

import type { WorkerAbout } from "../kernel/index.ts";
import type { Served } from "./served.ts";
import type { WorkerOptions } from "./worker-options.ts";

export function aboutText(options: WorkerOptions, { definitions, items, left }: Served): string {
  const { host, pid, queues, labels, concurrency, leaseMs, outbox } = options;
  const about: WorkerAbout = {
    host,
    pid,
    definitions,
    items,
    destinations: [...(outbox ?? new Map<string, unknown>()).keys()],
    ...(queues && { queues }),
    ...(labels.names && { labels: labels.names }),
    leaves: left,
    concurrency,
    leaseMs,
  };
  return JSON.stringify(about);
}
