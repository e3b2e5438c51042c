// Fork call: the place of a fork by the name of a call or of a node.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import type { RunRecord } from "../kernel/index.ts";

/** Names a call of a run. `nth` counts the calls with this name from 1; default 1. */
export interface ForkCall {
  name: string;
  nth?: number;
}

export function checkCall(call: unknown): ForkCall {
  if (typeof call !== "object" || call === null || Array.isArray(call))
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: expected the name of a call such as { name: "think" } as call, got ${inspect(call, { depth: 0 })}.`,
    );
  checkOptionNames(call, ["name", "nth"], "fork: call");
  const { name, nth } = call as ForkCall;
  checkName(name, "fork: call");
  if (nth !== undefined && (!Number.isSafeInteger(nth) || nth < 1))
    throw new RepriseError("BAD_OPTIONS", `fork: expected nth of a call to be 1 or more, got ${inspect(nth)}.`);
  return call as ForkCall;
}

/** `commands`: those of the run with the name, in the order of the requests. */
export function commandOfCall({ id }: RunRecord, commands: readonly string[], { name, nth = 1 }: ForkCall): string {
  const command = commands[nth - 1];
  if (command !== undefined) return command;
  const count = commands.length === 0 ? "no call" : commands.length === 1 ? "one call" : `${commands.length} calls`;
  throw new RepriseError(
    "CHECKPOINT_NOT_FOUND",
    `Run ${id} has made ${count} of ${name}${nth === 1 ? "" : `, so there is no call ${nth}`}. \`reprise journal\` shows its calls.`,
    { details: { run: id, call: name, nth } },
  );
}
