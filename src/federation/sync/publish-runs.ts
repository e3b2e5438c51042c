// Publish runs: finds the ended runs of the log that have no statement yet, and publishes those that a rule or the archive wants.
//
// publish-runs.R1. A row of the log with a head is the record of a run's end; a row of the same run without one is its statement. A run
//   that was retried has several: a statement belongs to the record before it.
// publish-runs.R2. The position up to which the log was read counts for the rules that it was read under. Under other rules the log is
//   read from its beginning: a rule that was added later fills up.
// publish-runs.R3. A home that was lost, or restored from a backup, lacks contents that the log says are published. A run whose contents
//   are not in the home is published again: the same bytes, and no record for what has one.

import { sha256Hex } from "../../base/index.ts";
import type { RunNumber, RunRecord, Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import type { LogRecord } from "../log/record.ts";
import { publishedForm } from "./published-run.ts";
import { Publisher } from "./publisher.ts";
import type { SyncState } from "./sync-state.ts";

/** The last record of a run's end, and whether a statement follows it (publish-runs.R1). */
interface LoggedRun {
  readonly run: RunNumber;
  readonly head: number;
  readonly key: string;
  /** The keys of what was published with it; none: it has no statement. */
  readonly published: string[];
}

export interface PublishOptions {
  /** Names what `isWanted` depends on (publish-runs.R2). */
  readonly rules: string;
  isWanted(record: RunRecord): boolean;
  readonly state?: SyncState | undefined;
  readonly signal?: AbortSignal;
}

export interface PublishedRuns {
  /** Runs that got a statement. */
  readonly published: number;
  /** Every run that was looked at, is as its record says, and is in the home if it is wanted: its pin may be dropped. */
  readonly runs: readonly RunNumber[];
  /** Remembers the position: after everything that the caller does for these runs. */
  readonly done: () => void;
}

const PAGE = 1_000;

/** Logs statements of ended runs that have none and are wanted, after their contents are in the home. */
export async function publishRuns(
  store: Store,
  home: Home,
  key: SigningKey,
  options: PublishOptions,
): Promise<PublishedRuns> {
  const { state } = options;
  const digest = sha256Hex(options.rules);
  const name = `published ${digest}`;
  const from = Number(state?.get(name) ?? 0);
  const rows = await store.logSize();
  const logged = await readLogged(store, from, rows);
  // Describing a store counts its runs: not for a round in which nothing is published.
  let publisher: Publisher | undefined;
  const runs: RunNumber[] = [];
  for (let at = 0; at < logged.length; at += PAGE) {
    const page = logged.slice(at, at + PAGE);
    const found = await store.readRuns(page.map(({ run }) => run));
    for (const [index, { run, head, key: runKey, published }] of page.entries()) {
      options.signal?.throwIfAborted();
      const record = found[index];
      // The run is gone, or it was retried: the record of its next end counts.
      if (record === undefined || record.head !== head) continue;
      runs.push(run);
      if (!options.isWanted(record) || (published.length > 0 && isInHome(home, published))) continue;
      publisher ??= new Publisher(store, home, key, await publishedForm(store));
      await publisher.add(record, runKey, rows, published);
    }
  }
  await publisher?.flush();
  const done = (): void => {
    if (rows !== from) state?.set(name, String(rows));
  };
  const { published = 0, refused = new Set() } = publisher ?? {};
  return { published, runs: runs.filter((run) => !refused.has(run)), done };
}

/** publish-runs.R3 */
function isInHome(home: Home, keys: readonly string[]): boolean {
  return keys.every((key) => home.contentState(key) !== "missing");
}

async function readLogged(store: Store, from: number, upTo: number): Promise<readonly LoggedRun[]> {
  const logged = new Map<RunNumber, LoggedRun>();
  for (let at = from; at < upTo;) {
    const rows = await store.readLog(at, Math.min(PAGE, upTo - at));
    if (rows.length === 0) break;
    at = rows.at(-1)!.n;
    for (const { run, head, rec } of rows) {
      if (run === undefined) continue;
      const { k = "" } = JSON.parse(rec) as LogRecord;
      if (head !== undefined) logged.set(run, { run, head, key: k, published: [] });
      else logged.get(run)?.published.push(k);
    }
  }
  return [...logged.values()];
}
