// Early answers: a parent whose journal has the result of a child before the child has ended.

import { isDeepStrictEqual } from "node:util";
import { decode } from "../../src/base/index.ts";
import type { Entry, RunRecord, Store } from "../../src/kernel/index.ts";

/** How far the clocks of two processes on one machine may differ: each estimates the time of the store. */
const CLOCK_ERROR_MS = 100;

type Child = Pick<RunRecord, "run" | "id" | "parent" | "parentCommand">;

/** The problems, and how many answers of children were compared. A child is found by its parent's number and command. */
export async function findEarlyAnswers(
  store: Pick<Store, "listRuns" | "readJournal">,
): Promise<{ readonly answers: number; readonly problems: readonly string[] }> {
  const runs = await store.listRuns({ limit: 100_000 });
  const journals = new Map<number, readonly Entry[]>();
  for (const { run } of runs) journals.set(run, await store.readJournal(run, 0));
  return compareAnswers(runs, journals);
}

export function compareAnswers(
  runs: readonly Child[],
  journals: ReadonlyMap<number, readonly Entry[]>,
): { readonly answers: number; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const keyOf = (parent: number, command: string): string => `${parent} ${command}`;
  const children = new Map(
    runs.flatMap(({ run, parent, parentCommand }) =>
      parent === undefined || parentCommand === undefined ? [] : [[keyOf(parent, parentCommand), run] as const],
    ),
  );
  let answers = 0;
  for (const { run, id } of runs)
    for (const { type, at, command, data } of journals.get(run) ?? []) {
      if (type !== "ChildWorkflowCompleted") continue;
      answers += 1;
      const child = children.get(keyOf(run, command));
      const end = child === undefined ? undefined : journals.get(child)?.at(-1);
      if (end === undefined) problems.push(`${command} of ${id} was answered, but there is no such child`);
      else if (end.type !== "RunCompleted") problems.push(`${command} of ${id} was answered before its child ended`);
      else if (end.at > at + CLOCK_ERROR_MS)
        problems.push(`${command} of ${id} was answered ${end.at - at} ms before its child ended`);
      else if (!isDeepStrictEqual(outputOf(data), outputOf(end.data)))
        problems.push(`${command} of ${id} was answered with another value than its child returned`);
    }
  return { answers, problems };
}

function outputOf(data: string): unknown {
  return (decode(data) as { readonly output?: unknown }).output;
}
