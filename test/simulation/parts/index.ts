// All parts of workloads, by name.

import type { Part, PartHost } from "../part.ts";
import { bankPart } from "./bank.ts";
import { canaryPart } from "./canary.ts";
import { cancelPart, retryPart } from "./control.ts";
import { flowsPart } from "./flows.ts";
import { graphsPart } from "./graphs.ts";
import { collectPart, outboxPart, updatesPart } from "./messages.ts";
import { ordersPart } from "./orders.ts";
import { programsPart } from "./programs.ts";
import { replaysPart } from "./replays.ts";
import { spendingPart } from "./spenders.ts";
import { tasksPart } from "./tasks.ts";

export const PARTS: ReadonlyMap<string, (host: PartHost) => Part> = new Map([
  ["programs", programsPart],
  ["collect", collectPart],
  ["updates", updatesPart],
  ["outbox", outboxPart],
  ["bank", bankPart],
  ["tasks", tasksPart],
  ["flows", flowsPart],
  ["graphs", graphsPart],
  ["cancel", cancelPart],
  ["replays", replaysPart],
  ["retry", retryPart],
  ["orders", ordersPart],
]);

/** Parts that are drawn by a stream of their own, so that the seeds without them keep their meaning. */
const LATER: ReadonlyMap<string, { readonly make: (host: PartHost) => Part; readonly share: number }> = new Map([
  ["spending", { make: spendingPart, share: 0.15 }],
]);

/** The share of worlds that have such a part. */
export const LATER_SHARES: ReadonlyMap<string, number> = new Map([...LATER].map(([name, { share }]) => [name, share]));

/** It must fail on some seeds, so it runs only when named. */
export const CANARY = "canary";

export function partOf(name: string): (host: PartHost) => Part {
  const make = name === CANARY ? canaryPart : (PARTS.get(name) ?? LATER.get(name)?.make);
  if (make === undefined)
    throw new Error(
      `There is no scenario ${name}; there are: ${[...PARTS.keys(), ...LATER.keys(), CANARY].join(", ")}.`,
    );
  return make;
}
