// Migrate: a live run continues with another version of its definition.
//
// migrate.M1. One write changes the version in the run's row and appends `RunMigrated`. The row says which version claims and
//   replays the run; the journal says the same: the last `RunMigrated`, otherwise the first entry.
// migrate.M2. The write names the head and the chain of the journal that the sender replayed with the code of the new version. A run
//   that has moved on is rejected, and the sender replays it again.
// migrate.M3. The write revokes the leases of the turn and of a flow's nodes, so that code of the old version commits nothing more.
//   Tasks belong to no version and keep their leases.
// migrate.M4. A paused run stays paused. A run that the engine stopped continues: its evidence is about the old version.

import { encode } from "../base/index.ts";
import { decodeData, type RunMigratedData } from "./entry-data.ts";
import type { Entry } from "./journal.ts";
import type { RunNumber } from "./run.ts";

/** migrate.M1 */
export interface MigrateWrite {
  readonly write: "migrate";
  readonly run: RunNumber;
  /** migrate.M2 */
  readonly head: number;
  readonly chain: string;
  readonly version: number;
  /** The data of the `RunMigrated` entry. */
  readonly data: string;
  /** Flows: the routes of the new version's nodes. A queued node needs one of them. */
  readonly routes?: readonly string[];
}
export type MigrateOutcome =
  | { readonly status: "committed" }
  /** migrate.M2. Also if the run has ended or does not exist. */
  | { readonly status: "moved" }
  /** A queued node waits under a queue or a label that no node of the new version has. */
  | { readonly status: "no_route"; readonly item: string; readonly route: string };

/** The data of a `RunMigrated` entry. */
export function runMigratedText({ from, to }: RunMigratedData): string {
  return encode({ from, to });
}

/** migrate.M1. The version that a journal says its run continues with; undefined: the journal is empty. */
export function versionOfJournal(entries: readonly Pick<Entry, "type" | "data">[]): number | undefined {
  const [first] = entries;
  const last = entries.findLast(({ type }) => type === "RunMigrated");
  if (last !== undefined) return decodeData("RunMigrated", last.data).to;
  return first === undefined ? undefined : decodeData("RunStarted", first.data).version;
}
