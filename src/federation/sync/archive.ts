// Archive: history that outlives the database: the log and everything of ended runs on a carrier.
//
// archive.A1. Every ended run gets a statement, and its journal goes to the carrier in full. Then its pin is dropped: `prune` may delete
//   it, and `fetchRun` brings it back.
// archive.A2. A store with a codec gives blind lines only (docs/decisions/0139), and a run cannot be made of them. Its runs stay pinned.
// archive.A3. A run is released after the checkpoint that covers its statement is on the carrier, never before.

import type { Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Carrier } from "../../carriers/index.ts";
import type { FoundRun } from "../home/runs.ts";
import type { Home } from "../home/home.ts";
import { firstEpoch, type Origin } from "../log/origin.ts";
import type { PublicationRule } from "./publish.ts";
import { publishRuns } from "./publish-runs.ts";
import { publishedForm } from "./published-run.ts";
import { PackReader } from "./pull-contents.ts";
import { pushTo, type PushedLog } from "./push.ts";
import type { SyncState } from "./sync-state.ts";
import { copyLog } from "./take-own.ts";

/** The name of the archive as a reader. */
export const ARCHIVE = "archive";
const EVERYTHING: readonly PublicationRule[] = [{ to: [ARCHIVE], payloads: "full" }];

export interface ArchiveOptions {
  readonly state?: SyncState | undefined;
  readonly signal?: AbortSignal;
  /** As of a push. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface Archived {
  /** Runs that the carrier has and `prune` may delete. */
  readonly runs: number;
  /** archive.A2. True: the runs stay pinned. */
  readonly isBlind: boolean;
  readonly logs: readonly PushedLog[];
}

/** Puts the log and all ended runs of a store on a carrier, and drops their pins. */
export async function archiveTo(
  store: Store,
  home: Home,
  key: SigningKey,
  carrier: Carrier,
  options: ArchiveOptions = {},
): Promise<Archived> {
  const { signal, state, onProgress } = options;
  const { runs, done } = await publishRuns(store, home, key, {
    rules: `archive ${carrier.url}`,
    isWanted: () => true,
    state,
    ...(signal && { signal }),
  });
  await copyLog(store, home, key);
  const own = firstEpoch(key.origin);
  const logs = await pushTo(home, carrier, {
    reader: ARCHIVE,
    rules: EVERYTHING,
    own,
    origins: [own, `${own}/*`],
    state,
    onProgress,
    ...(signal && { signal }),
  });
  const isBlind = (await publishedForm(store)) === "blind";
  // archive.A3
  const isThere = logs.every(({ status }) => status === "pushed" || status === "unchanged" || status === "empty");
  if (isBlind || !isThere) return { runs: 0, isBlind, logs };
  if (runs.length > 0) await store.write([{ write: "release", runs }]);
  done();
  return { runs: runs.length, isBlind, logs };
}

/** Brings the journals of one run of a log from a carrier into the home; returns its generations with journals here. */
export async function fetchRun(
  home: Home,
  carrier: Carrier,
  origin: Origin,
  run: string,
): Promise<readonly FoundRun[]> {
  const found = home.findRuns({ origin, run });
  const fetched: FoundRun[] = [];
  for (const one of found) {
    const statement = one.statement === undefined ? undefined : home.content(one.statement);
    if (statement === undefined) continue;
    const reader = new PackReader(home, carrier, origin, { journals: "all" });
    await reader.readJournal(statement);
    for (const { root, lines } of reader.journals) home.putJournal(root, lines);
    fetched.push(one);
  }
  return fetched;
}
