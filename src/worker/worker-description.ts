// The worker's row in the store describes what it can claim, for people who monitor workers.

import type { WorkerProfile } from "../kernel/index.ts";
import type { ClaimFilter } from "./claim-filter.ts";
import type { WorkerOptions } from "./worker-options.ts";

export function describeWorker(options: WorkerOptions, { definitions, items, excluded }: ClaimFilter): string {
  const { host, pid, queues, labels, concurrency, leaseMs, outbox } = options;
  const profile: WorkerProfile = {
    host,
    pid,
    definitions,
    items,
    destinations: [...(outbox ?? new Map<string, unknown>()).keys()],
    ...(queues && { queues }),
    ...(labels.names && { labels: labels.names }),
    unclaimed: excluded,
    concurrency,
    leaseMs,
  };
  return JSON.stringify(profile);
}
