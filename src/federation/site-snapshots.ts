// Site snapshots: the snapshots of a home, as people name them.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { RepriseError } from "../base/index.ts";
import type { SnapshotChange, SnapshotInfo } from "./api.ts";
import { openHome, type Home } from "./home/home.ts";
import type { Snapshot } from "./home/snapshots.ts";
import { snapshotId } from "./log/snapshot.ts";

const ID_DIGITS = 64;

export class SiteSnapshots {
  readonly #home: Home;

  constructor(home: Home) {
    this.#home = home;
  }

  /** The id of everything that is visible now. */
  current(): string {
    const heads = this.#home.origins().filter(({ size }) => size > 0);
    return snapshotId(Object.fromEntries(heads.map(({ id, size, root }) => [id, [size, root] as const])));
  }

  async create(): Promise<SnapshotInfo> {
    return infoOf(this.#home.snapshots.create());
  }

  async list(): Promise<readonly SnapshotInfo[]> {
    return this.#home.snapshots.list().map(infoOf);
  }

  async get(id: string): Promise<SnapshotInfo> {
    const whole = this.#resolve(id);
    // A kept one knows when it was taken.
    const kept = this.#home.snapshots.list().find((one) => one.id === whole);
    return infoOf(kept ?? this.#home.snapshots.get(whole));
  }

  async diff(before: string, after?: string): Promise<readonly SnapshotChange[]> {
    return this.#home.snapshots.diff(this.#resolve(before), after === undefined ? undefined : this.#resolve(after));
  }

  async stateHash(id?: string): Promise<string> {
    return this.#home.stateHash(id === undefined ? undefined : this.#resolve(id));
  }

  /** The whole id, from its first digits if one kept snapshot has them. */
  #resolve(id: string): string {
    if (id.length === ID_DIGITS) return id;
    const found = this.#home.snapshots.list().filter((one) => one.id.startsWith(id));
    if (found.length === 1) return found[0]!.id;
    const why = found.length === 0 ? "no snapshot begins with it" : `${found.length} snapshots begin with it`;
    throw new RepriseError(
      "USAGE",
      `${JSON.stringify(id)} names no snapshot: ${why}. \`reprise snapshot list\` lists them.`,
    );
  }
}

function infoOf({ id, heads, closed, at }: Snapshot): SnapshotInfo {
  return { id, heads, isClosed: closed, ...(at !== undefined && { at: new Date(at) }) };
}

/** The kept snapshots of a home that exists; nothing is created, and a home that cannot be read has none. For completion. */
export function listSnapshotsIn(dir: string): readonly Snapshot[] {
  if (!existsSync(join(dir, "federation.db"))) return [];
  try {
    using home = openHome(dir);
    return home.snapshots.list();
  } catch {
    return [];
  }
}
