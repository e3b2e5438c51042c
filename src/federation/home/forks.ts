// Forks: a log that was written twice. Its common records stay; everything after them is quarantined.
//
// forks.Q1. A fork is proved by two notes that the origin signed, never by a carrier's files alone: a damaged or hostile carrier cannot
//   make a site drop the log of another.
// forks.Q2. Quarantine lowers the visible size to the last common record and takes nothing more. The records stay in the table: snapshots
//   that were made before are read as before.
// forks.Q3. Other logs continue.

import { RepriseError } from "../../base/index.ts";
import { leafHash } from "../../receipts/index.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import { LogTree } from "../log/log-tree.ts";
import type { Origin } from "../log/origin.ts";
import { cellText } from "./blobs.ts";
import { checkpointRoot } from "./checkpoint-root.ts";
import {
  evidenceText,
  makeEvidence,
  makeHeadEvidence,
  originOfEvidence,
  verifyEvidence,
  type ForkEvidence,
} from "./fork-evidence.ts";
import type { HomeParts } from "./home-parts.ts";
import type { OriginRow } from "./origins.ts";

export type BranchOutcome =
  /** The other copy is a prefix of the log here, or the other way round. */
  { readonly status: "consistent" } | { readonly status: "forked"; readonly at: number; readonly evidence: string };

export class Forks {
  readonly #parts: HomeParts;

  constructor(parts: HomeParts) {
    this.#parts = parts;
  }

  /**
   * Compares a signed head with the visible log, which is at least as long. Returns the last record that may still be common if the
   * log has two branches. `compareBranch` then finds the last one that is.
   */
  compareHead(row: OriginRow, checkpoint: Checkpoint, peer: string | undefined): number | undefined {
    const root = checkpointRoot(checkpoint).toString("hex");
    if (this.#rootAt(row, checkpoint.size) === root) {
      this.#parts.origins.keepCheckpoint(row.number, checkpoint);
      return undefined;
    }
    const own = this.#parts.origins.checkpoint(row)!;
    const evidence = makeHeadEvidence(checkpoint, { checkpoint: own, leaves: this.#leaves(row.number, own.size) });
    this.#take(row, evidence, peer);
    return Math.min(row.size, evidence.at);
  }

  #rootAt({ number, size, root }: OriginRow, at: number): string {
    if (at === size) return root;
    const known = this.#parts.db.get("select root from checkpoint where origin = ? and size = ?", number, at);
    return known === undefined ? this.#treeAt(number, at).root().toString("hex") : String(known["root"]);
  }

  #treeAt(number: number, at: number): LogTree {
    const tree = LogTree.empty();
    for (const { rec } of this.#parts.log.records(number, at)) tree.append(rec);
    return tree;
  }

  /**
   * Compares the log here with another copy of it, of which all leaf hashes are known: those of level 0 of its tiles. If both are
   * signed and neither extends the other, the records after the last common one are quarantined (forks.Q1).
   */
  compareBranch(origin: Origin, checkpoint: Checkpoint, leaves: readonly Buffer[], peer?: string): BranchOutcome {
    const row = this.#get(origin);
    const opened = this.#parts.origins.keys(row).open(checkpoint.note);
    const tree = LogTree.empty();
    for (const leaf of leaves) tree.push(leaf);
    if (opened.origin !== origin || tree.size !== opened.size || !tree.root().equals(checkpointRoot(opened)))
      throw new RepriseError(
        "CHECKPOINT_INVALID",
        `The ${leaves.length} hashes are not those of the checkpoint of ${origin}: the carrier is damaged. Nothing is quarantined.`,
      );
    const own = this.#newestCheckpoint(row);
    if (own === undefined) return { status: "consistent" };
    const ownLeaves = this.#leaves(row.number, own.size);
    const shorter = Math.min(ownLeaves.length, leaves.length);
    const at = ownLeaves.findIndex((leaf, i) => i < shorter && !leaf.equals(leaves[i]!));
    if (at === -1) return { status: "consistent" };
    const evidence = makeEvidence(at, { checkpoint: own, leaves: ownLeaves }, { checkpoint: opened, leaves });
    this.#take(row, evidence, peer);
    return { status: "forked", at, evidence: evidenceText(evidence) };
  }

  /** Evidence that another site found. Returns the number of common records. */
  takeEvidence(text: string, peer?: string): number {
    const row = this.#get(originOfEvidence(text) ?? "a log without a name");
    const evidence = verifyEvidence(text, this.#parts.origins.keys(row));
    this.#take(row, evidence, peer);
    return evidence.at;
  }

  #take(row: OriginRow, evidence: ForkEvidence, peer: string | undefined): void {
    this.#parts.db.transact(() => {
      this.#parts.conflicts.add({ kind: "fork", cell: `origin:${row.id}`, evidence, peer });
      this.#quarantine(this.#parts.origins.find(row.id)!, evidence.at);
    });
  }

  #get(origin: Origin): OriginRow {
    const row = this.#parts.origins.find(origin);
    if (row === undefined) throw new RepriseError("NOT_ADMITTED", `${origin} is not admitted here.`);
    return row;
  }

  /** The newest checkpoint whose records are in the table, also after a quarantine. */
  #newestCheckpoint({ number, id }: OriginRow): Checkpoint | undefined {
    const { db, origins } = this.#parts;
    const stored = db.get("select max(n) as n from log where origin = ?", number)?.["n"];
    return origins.checkpointUpTo(number, id, Number(stored ?? 0));
  }

  #leaves(number: number, upTo: number): Buffer[] {
    return [...this.#parts.log.records(number, upTo)].map(({ rec }) => leafHash(rec));
  }

  /** forks.Q2 */
  #quarantine(row: OriginRow, at: number): void {
    const { db, cells, log } = this.#parts;
    const { number } = row;
    const size = Math.max(0, Math.min(at, row.size));
    const tree = size === row.size ? LogTree.of(row.peaks, size) : this.#treeAt(number, size);
    const clock = size === 0 ? 0 : log.clockOf(number, size)!;
    const touched = db
      .all(
        "select distinct cell from log where origin = ? and n > ? and n <= ? and cell is not null",
        number,
        size,
        row.size,
      )
      .map(({ cell }) => cellText(cell));
    db.run(
      `update origin set status = 'forked', size = ?, clock = ?, root = ?, peaks = ?, cursor = ?, cursor_clock = ?, cursor_peaks = ?
        where number = ?`,
      ...[size, clock, tree.root().toString("hex"), tree.peaks(), size, clock, tree.peaks(), number],
    );
    cells.joinAgain(touched, log.visibleBounds());
    db.run("delete from wanted where origin = ? and n > ?", number, size);
    db.run("delete from origin_key where origin = ? and n > ?", number, size);
  }
}
