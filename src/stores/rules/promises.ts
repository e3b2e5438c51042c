// Promises: the rows of open promises (open-promise.P1), and their list.

import {
  hasEnded,
  type NewPromise,
  type OpenPromise,
  type PromiseChanges,
  type PromiseFilter,
  type PromisePage,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { findRequest } from "./budgets.ts";

/** Writes what a turn changes. */
export function changePromises(rows: Rows, run: RunNumber, { opened, closed }: PromiseChanges): void {
  for (const command of closed) rows.drop("run_promises", [run, command]);
  insertPromises(rows, run, opened);
}

export function insertPromises(rows: Rows, run: RunNumber, promises: readonly NewPromise[]): void {
  for (const { command, name, key, seq, at } of promises)
    rows.insert("run_promises", { run, command, name, key: key ?? null, seq, at });
}

const PROMISE = ["run", "command", "name", "key", "seq", "at"] as const;
const RUN = ["id", "definition", "status"] as const;
const DATA = ["data"] as const;

type PromiseRow = Part<"run_promises", (typeof PROMISE)[number]>;

/** By run, then by command. Runs with the name are found in its index; the definition is tested on each row. */
export function listPromises(rows: Rows, filter: PromiseFilter): PromisePage {
  const read = selectPromises(rows, filter);
  const found = filter.name === undefined ? read : read.filter(({ name }) => name === filter.name);
  const runs = found.map(({ run }) => rows.get("runs", [run], RUN));
  const entries = found.map(({ run, seq }) => (seq === 0 ? undefined : rows.get("journal", [run, seq], DATA)));
  const requests = found.map(({ run, command, seq }) => (seq === 0 ? findRequest(rows, run, command) : undefined));
  const promises = found.flatMap((row, index): OpenPromise[] => {
    const [of, entry, request] = [runs[index], entries[index], requests[index]];
    if (of === undefined || hasEnded(of.status) || (entry ?? request) === undefined) return [];
    if (filter.definition !== undefined && of.definition !== filter.definition) return [];
    const { key, ...promise } = row;
    const { id: runId, definition } = of;
    const budget = request && { budget: request };
    return [{ ...promise, key: key ?? undefined, runId, definition, data: entry?.data ?? "", ...budget }];
  });
  const last = read.length < filter.limit ? undefined : read.at(-1);
  return { promises, next: last && { run: last.run, command: last.command } };
}

function selectPromises(rows: Rows, { name, after, limit }: PromiseFilter): readonly PromiseRow[] {
  // The rest of the run that the last page ended in, then the runs after it.
  const rest =
    after === undefined ? [] : rows.select("run_promises", [after.run], PROMISE, { after: after.command, limit });
  if (rest.length >= limit) return rest;
  const span = { after: after?.run, limit: limit - rest.length };
  const others =
    name === undefined
      ? rows.select("run_promises", [], PROMISE, span)
      : rows.select("run_promises_by_name", [name], PROMISE, span);
  return [...rest, ...others];
}
