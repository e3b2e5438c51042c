// Named runs: the other runs that a run's journal names. A run is complete if they are all at hand.

import { commandForkOriginOf, decodeData, forkOriginOf, type Entry } from "../kernel/index.ts";
import type { RunReference } from "./bundled-run.ts";

/** A run that a journal names. */
export type NamedRun =
  | {
      readonly as: "child" | "earlier generation" | "origin of the fork";
      readonly id: string;
      /** Undefined: any. */
      readonly generation?: number;
    }
  /** A child whose id is not shown: by the command that started it. */
  | { readonly as: "child"; readonly command: string; readonly of: RunReference };

/** A run that is named by its id. */
export type NamedById = Extract<NamedRun, { readonly id: string }>;

/** The runs that some entries name: children, and in entry 1 the origin of a fork. */
export function namedRunsIn(entries: readonly Pick<Entry, "type" | "data">[]): readonly NamedById[] {
  return entries.flatMap((entry): readonly NamedById[] => {
    if (entry.type === "ChildWorkflowInitiated")
      return [{ as: "child", id: decodeData("ChildWorkflowInitiated", entry.data).childExecutionId }];
    if (entry.type !== "RunStarted") return [];
    const started = decodeData("RunStarted", entry.data);
    const [step, command] = [forkOriginOf(started), commandForkOriginOf(started)];
    if (command !== undefined) return [{ as: "origin of the fork", id: command.run, generation: command.generation }];
    return step === undefined ? [] : [{ as: "origin of the fork", id: step.run }];
  });
}

/** A line may claim any number of generations: the newest of them are looked for. */
const MAX_EARLIER = 10_000;

/** The generations before this one. */
export function earlierGenerations(id: string, generation: number): readonly NamedById[] {
  const from = Math.max(0, generation - MAX_EARLIER);
  return Array.from({ length: generation - from }, (_, index) => ({
    as: "earlier generation",
    id,
    generation: from + index,
  }));
}

/** `child pay-1-0`, `earlier generation 2`. */
export function namedRunText(named: NamedRun): string {
  if ("of" in named) return `child of ${named.command}`;
  const { as, id, generation } = named;
  return as === "earlier generation" ? `${as} ${generation}` : `${as} ${id}`;
}
