// A store that kills its process with SIGKILL just before or just after its n-th counted commit.

import type { StoreSource } from "reprise";
import { aroundWrites, type AnyWrite } from "./world.ts";

export interface Kill {
  readonly when: "before" | "after";
  readonly commit: number;
}

/** Without `kill` the store is unchanged. */
export function selfKillingStore(
  source: StoreSource,
  kill: Kill | undefined,
  counts: (write: AnyWrite) => boolean,
): StoreSource {
  if (kill === undefined) return source;
  let commits = 0;
  return aroundWrites(source, async (writes, apply) => {
    if (!writes.some(counts)) return apply();
    commits += 1;
    const isIt = commits === kill.commit;
    if (isIt && kill.when === "before") process.kill(process.pid, "SIGKILL");
    const outcomes = await apply();
    if (isIt && kill.when === "after") process.kill(process.pid, "SIGKILL");
    return outcomes;
  });
}
