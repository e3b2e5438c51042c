// The open promises of all runs, page by page.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import { costOf, decodeData, shownCost, type OpenPromise, type PromisePosition, type Store } from "../kernel/index.ts";
import type { OpenPromiseFilter, OpenPromiseInfo } from "./api.ts";

const PAGE = 100;

export async function* listPromises(store: Store, filter: OpenPromiseFilter): AsyncIterable<OpenPromiseInfo> {
  const { position, limit, ...selected } = checkFilter(filter);
  let left = limit;
  let [run, seen] = [0, new Set<string>()];
  for (let after = position; left > 0;) {
    const { promises, next } = await store.listPromises({ ...selected, ...(after && { after }), limit: PAGE });
    for (const promise of promises) {
      if (promise.run !== run) [run, seen] = [promise.run, new Set()];
      const info = infoOf(promise);
      const id = JSON.stringify([info.kind, info.name, info.key]);
      // open-promise.P2
      if (seen.has(id)) continue;
      seen.add(id);
      yield info;
      left -= 1;
      if (left === 0) return;
    }
    if (next === undefined) return;
    after = next;
  }
}

function infoOf(promise: OpenPromise): OpenPromiseInfo {
  const { run, command, runId, definition, name, key, at, data, budget } = promise;
  const cursor = `${run}:${command}`;
  const createdAt = new Date(at);
  // open-promise.P3
  if (budget !== undefined) {
    const { cap, ...books } = budget.state;
    const costs = { reserve: budget.reserve, spent: books.spent, reserved: books.reserved, lost: books.lost };
    const shown = Object.entries(costs).map(([book, amounts]) => [book, shownCost(amounts, cap)] as const);
    const show = { cap: costOf(cap), ...Object.fromEntries(shown) };
    return { runId, definition, kind: "budget", name: "budget", key: command, show, createdAt, cursor };
  }
  const { show, timeout } = decodeData("PromiseCreated", data);
  return {
    runId,
    definition,
    kind: "promise",
    name,
    ...(key !== undefined && { key }),
    ...(show !== undefined && { show }),
    createdAt,
    ...(timeout !== undefined && { deadline: new Date(at + timeout) }),
    cursor,
  };
}

interface CheckedFilter {
  readonly name?: string;
  readonly definition?: string;
  readonly position: PromisePosition | undefined;
  readonly limit: number;
}

function checkFilter(filter: OpenPromiseFilter): CheckedFilter {
  checkOptionNames(filter, ["after", "definition", "limit", "name"], "promises");
  const { name, definition, after, limit = Number.POSITIVE_INFINITY } = filter;
  if (name !== undefined) checkName(name, "promises: name");
  if (definition !== undefined) checkName(definition, "promises: definition");
  if (limit !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(limit) && limit >= 0))
    throw new RepriseError(
      "BAD_OPTIONS",
      `promises: expected a whole number of 0 or more as limit, got ${inspect(limit)}.`,
    );
  return {
    ...(name !== undefined && { name }),
    ...(definition !== undefined && { definition }),
    position: after === undefined ? undefined : positionOf(after),
    limit,
  };
}

function positionOf(cursor: unknown): PromisePosition {
  const [, run, command] = (typeof cursor === "string" && /^(\d{1,16}):(.+)$/.exec(cursor)) || [];
  if (run === undefined || command === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `promises: expected the cursor of a listed promise as after, got ${inspect(cursor)}.`,
    );
  return { run: Number(run), command };
}
