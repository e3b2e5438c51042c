// The open promises of all runs, page by page.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import { decodeData, type OpenPromise, type PromisePosition, type Store } from "../kernel/index.ts";
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
      const id = JSON.stringify([promise.name, promise.key]);
      // open-promise.P2
      if (seen.has(id)) continue;
      seen.add(id);
      yield infoOf(promise);
      left -= 1;
      if (left === 0) return;
    }
    if (next === undefined) return;
    after = next;
  }
}

function infoOf({ run, command, runId, definition, name, key, at, data }: OpenPromise): OpenPromiseInfo {
  const { show, timeout } = decodeData("PromiseCreated", data);
  return {
    runId,
    definition,
    name,
    ...(key !== undefined && { key }),
    ...(show !== undefined && { show }),
    createdAt: new Date(at),
    ...(timeout !== undefined && { deadline: new Date(at + timeout) }),
    cursor: `${run}:${command}`,
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
