// Every part a workload may have, by name.

import type { Part, PartHost } from "../part.ts";
import { bankPart } from "./bank.ts";
import { cancelPart, retryPart } from "./control.ts";
import { flowsPart } from "./flows.ts";
import { graphsPart } from "./graphs.ts";
import { collectPart, outboxPart, updatesPart } from "./messages.ts";
import { programsPart } from "./programs.ts";

export const PARTS: ReadonlyMap<string, (host: PartHost) => Part> = new Map([
  ["programs", programsPart],
  ["collect", collectPart],
  ["updates", updatesPart],
  ["outbox", outboxPart],
  ["bank", bankPart],
  ["flows", flowsPart],
  ["graphs", graphsPart],
  ["cancel", cancelPart],
  ["retry", retryPart],
]);
