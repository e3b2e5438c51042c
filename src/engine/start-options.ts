// The options of `start`, checked before anything is written (client-core.N1).

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError, toMs } from "../base/index.ts";
import type { StartWrite } from "../kernel/index.ts";
import type { StartOptions } from "./api.ts";

export function checkOptions(options: unknown = {}): StartOptions & { signals?: unknown } {
  if (typeof options === "object" && options !== null) {
    checkOptionNames(
      options,
      ["id", "tags", "priority", "budget", "deadline", "delay", "singleton", "debounce", "signals", "signal", "trace"],
      "start",
    );
    return options;
  }
  throw new RepriseError("BAD_OPTIONS", `start: expected an object of options, got ${typeof options}.`);
}

export function checkStart({ tags = [], priority = 0 }: StartOptions): { tags: readonly string[]; priority: number } {
  if (!Array.isArray(tags))
    throw new RepriseError("BAD_OPTIONS", `start: expected an array of tags, got ${typeof tags}.`);
  for (const tag of tags) checkName(tag, "tag");
  if (!Number.isSafeInteger(priority))
    throw new RepriseError("BAD_OPTIONS", `start: expected a whole number as priority, got ${String(priority)}.`);
  return { tags: [...new Set(tags)], priority };
}

/** When a run starts, and which runs replace each other. */
export function checkBeginning(options: StartOptions): Pick<StartWrite, "delayMs" | "singleton" | "debounce"> {
  const { id, delay, singleton, debounce } = options;
  if (singleton !== undefined) checkName(singleton, "start: singleton");
  if (debounce === undefined)
    return {
      ...(delay !== undefined && { delayMs: toMs(delay, "start: delay") }),
      ...(singleton !== undefined && { singleton }),
    };
  if (typeof debounce !== "object" || debounce === null)
    throw new RepriseError("BAD_OPTIONS", `start: expected { key, by } as debounce, got ${inspect(debounce)}.`);
  checkOptionNames(debounce, ["key", "by"], "start: debounce");
  refuseTogether(id, "id", "many starts become one run, and the first of them chooses its id");
  refuseTogether(delay, "delay", "`by` already says when the run starts");
  refuseTogether(singleton, "singleton", "a run that has started would absorb a start that is still being debounced");
  return {
    debounce: checkName(debounce.key, "start: debounce.key"),
    delayMs: toMs(debounce.by, "start: debounce.by"),
  };
}

function refuseTogether(value: unknown, name: string, why: string): void {
  if (value === undefined) return;
  throw new RepriseError("BAD_OPTIONS", `start: debounce cannot be combined with ${name}: ${why}. Remove one of them.`);
}
