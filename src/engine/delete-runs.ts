// Delete runs: what `run.delete` and `engine.prune` do to runs that have ended.

import { checkOptionNames, RepriseError, toMs } from "../base/index.ts";
import type { DeleteOutcome, Store } from "../kernel/index.ts";
import { checkSignal } from "./abort.ts";
import type { DeleteReport, PruneOptions } from "./api.ts";

export async function pruneRuns(store: Store, options: PruneOptions): Promise<DeleteReport> {
  checkOptionNames(options, ["dryRun", "olderThan", "onProgress", "signal"], "prune");
  const { olderThan, dryRun = false, onProgress } = options;
  const ageMs = toMs(olderThan, "prune: olderThan");
  if (typeof dryRun !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `prune: expected dryRun to be true or false, got ${typeof dryRun}.`);
  if (onProgress !== undefined && typeof onProgress !== "function")
    throw new RepriseError("BAD_OPTIONS", `prune: expected a function as onProgress, got ${typeof onProgress}.`);
  const signal = checkSignal(options.signal, "prune");
  signal?.throwIfAborted();
  return store.prune(store.now() - ageMs, { dryRun, ...(onProgress && { onProgress }), ...(signal && { signal }) });
}

export async function deleteRun(store: Store, id: string): Promise<DeleteReport> {
  const outcome = await store.deleteRun(id);
  if (outcome.status === "deleted") return { runs: outcome.runs };
  throw refusal(id, outcome);
}

function refusal(id: string, outcome: Exclude<DeleteOutcome, { status: "deleted" }>): RepriseError {
  switch (outcome.status) {
    case "no_run":
      return new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store.`);
    case "child":
      return inUse(id, `it belongs to run ${outcome.of}. Delete that run: \`reprise delete ${outcome.of}\``);
    case "live": {
      const { run, as } = outcome;
      const which = run === id ? `it is ${as}` : `run ${run}, which it started, is ${as}`;
      return inUse(id, `${which}. Wait for its end, or end it: \`reprise terminate ${run}\``);
    }
    case "forked":
      return inUse(
        id,
        `run ${outcome.by} is a fork of it and reads its steps. Delete the fork first: \`reprise delete ${outcome.by}\``,
      );
    case "sending":
      return inUse(id, `run ${outcome.run} has messages that are not delivered yet. Wait until a worker delivers them`);
    case "logging":
      return inUse(id, `the end of run ${outcome.run} is not in the log of this store yet. Add it: \`reprise push\``);
    case "pinned":
      return inUse(
        id,
        `run ${outcome.run} is kept until it is published or archived. Publish it with \`reprise push\`, or erase it: \`reprise erase ${outcome.run}\``,
      );
  }
}

function inUse(id: string, why: string): RepriseError {
  return new RepriseError("RUN_IN_USE", `Run ${id} cannot be deleted: ${why}.`, { details: { run: id } });
}
