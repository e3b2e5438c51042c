// Name waits: why a run does not move, for the author of a test: the reasons of `explain`, each with the call that ends the wait.

import { formatMs, toMs, type Duration, type EpochMs } from "../base/index.ts";
import { explain, type WaitReason } from "../explain/index.ts";
import type { Store } from "../kernel/index.ts";

/** One sentence per reason. */
export async function nameWaits(store: Store, id: string): Promise<readonly string[]> {
  const record = await store.findRun(id);
  if (record === undefined) return ["No run has this id. Call engine.start."];
  return (await explain(store, record)).map((reason) => {
    const call = callOf(reason, store.now());
    return call === undefined ? reason.text : `${reason.text} Call ${call}.`;
  });
}

function callOf(reason: WaitReason, now: EpochMs): string | undefined {
  switch (reason.reason) {
    case "promise": {
      const options = reason.key === undefined ? "" : `, { key: ${JSON.stringify(reason.key)} }`;
      const resolve = `run.resolve(${JSON.stringify(reason.name)}, …${options})`;
      return reason.until === undefined ? resolve : `${resolve}, or ${advance(reason.until, now)}`;
    }
    case "signal":
      return reason.names.map((name) => `run.signal(${JSON.stringify(name)}, …)`).join(" or ");
    case "timer":
    case "delay":
    case "retry":
      return advance(reason.until, now);
    case "paused":
    case "stopped":
      return "run.resume()";
    case "expected":
      return "engine.start";
    case "queue_paused":
      return `engine.getQueue(${JSON.stringify(reason.queue)}).resume()`;
    case "child": {
      const [first] = reason.waitsFor;
      const call = first && callOf(first, now);
      return call?.startsWith("run.") === true ? `${call} on the run ${reason.child}` : call;
    }
    default:
      return undefined;
  }
}

/** `engine.clock.advance("30 d")` */
function advance(until: Date, now: EpochMs): string {
  const ms = Math.max(0, until.getTime() - now);
  const text = formatMs(ms);
  const isExact = /^\d+ [a-z]+$/.test(text) && toMs(text as Duration) === ms;
  return `engine.clock.advance(${isExact ? JSON.stringify(text) : ms})`;
}
