// Site runs: the runs that a home knows, and bundles of them.
//
// site-runs.B1. What is missing of a run is fetched from the carrier that is named: its journal by its root, and of a site that serves, a
//   run that has no record yet as the bundle that the site makes of it.

import { RepriseError } from "../base/index.ts";
import type { FederatedRun, RunsFilter } from "./api.ts";
import type { Carrier } from "../carriers/index.ts";
import type { Home } from "./home/home.ts";
import type { FoundRun } from "./home/runs.ts";
import type { Target } from "./peer-exchange.ts";
import { fetchRun } from "./sync/archive.ts";
import { homeBundle } from "./sync/home-bundle.ts";

export function findRuns(home: Home, filter: RunsFilter): readonly FederatedRun[] {
  return home
    .findRuns(filter)
    .map(({ run, createdAt, endedAt, origin, generation, definition, version, status, tags }) => ({
      origin,
      id: run,
      generation,
      definition,
      version,
      status,
      createdAt: new Date(createdAt),
      ...(endedAt !== undefined && { endedAt: new Date(endedAt) }),
      tags,
    }));
}

/** Which run: its id and, where several sites have one, its log. */
export interface RunName {
  readonly run: string;
  readonly origin: string | undefined;
}

/** site-runs.B1 */
export async function bundleOf(
  home: Home,
  name: RunName,
  target: Target | undefined,
  carrier: Carrier | undefined,
): Promise<readonly string[]> {
  const found = oneOrigin(home, name);
  const [first] = found;
  if (first === undefined) {
    const server = target === undefined ? undefined : await fetchBundle(target, name.run);
    if (server !== undefined) return server;
    throw notHere(name.run, target);
  }
  if (carrier !== undefined) await fetchRun(home, carrier, first.origin, name.run);
  return found.flatMap((one) => [...homeBundle(home, one)]);
}

/** All generations of the run, of one log. */
function oneOrigin(home: Home, { run, origin }: RunName): readonly FoundRun[] {
  const found = home.findRuns({ run, ...(origin !== undefined && { origin }) });
  const origins = [...new Set(found.map((one) => one.origin))];
  if (origins.length > 1)
    throw new RepriseError("USAGE", `Several sites have a run ${run}: ${origins.join(", ")}. Name the origin as well.`);
  // A run record that a retry followed is a generation twice: the last one stands.
  const byGeneration = new Map(found.map((one) => [one.generation, one]));
  return [...byGeneration.values()].toSorted((a, b) => a.generation - b.generation);
}

const MAX_BYTES = 1024 * 1024 * 1024;

/** The bundle that a serving site makes of a run, also while it is running; undefined: it gives none. */
async function fetchBundle({ url, token }: Target, run: string): Promise<readonly string[] | undefined> {
  if (!/^https?:/.test(url)) return undefined;
  const response = await fetch(`${url.replace(/\/+$/, "")}/run/${encodeURIComponent(run)}`, {
    redirect: "error",
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  }).catch((cause: unknown) => {
    throw new RepriseError("CARRIER_UNREACHABLE", `${url} does not answer: ${(cause as Error).message}.`, { cause });
  });
  if (!response.ok) {
    await response.body?.cancel();
    return undefined;
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES)
      throw new RepriseError("LIMIT_EXCEEDED", `The bundle of ${run} has more than ${MAX_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8").trimEnd().split("\n");
}

function notHere(run: string, target: Target | undefined): RepriseError {
  const where = target === undefined ? "" : `, and ${target.name} gives none`;
  return new RepriseError(
    "RUN_NOT_FOUND",
    `No log of this site has a run ${run}${where}. It may not have ended, or its site does not publish it to this one.`,
    { details: { run } },
  );
}
