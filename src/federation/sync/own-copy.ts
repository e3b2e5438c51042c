// Own copy: a copy of this site's log that the home or a carrier has, under a signature of this site.

import { RepriseError } from "../../base/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Carrier } from "../../carriers/index.ts";
import type { Home } from "../home/home.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import type { Origin } from "../log/origin.ts";
import { LogTree } from "../log/log-tree.ts";
import { decodeEntries, TILE_WIDTH, tilePath } from "../log/tiles.ts";
import { pullOwn } from "./pull.ts";
import { readHead } from "./push.ts";

export interface OwnCopy {
  readonly head: Checkpoint;
  /** The records after a number, up to another. */
  records(after: number, upTo: number): Promise<readonly string[]>;
  /** Brings the copy into the home. */
  keep?(home: Home): Promise<void>;
}

/** The copy in the home; undefined: it has none. */
export function homeCopy(home: Home, origin: Origin): OwnCopy | undefined {
  const head = home.checkpoint(origin);
  if (head === undefined || head.size === 0) return undefined;
  return {
    head,
    records: async (after, upTo) => home.readLog(origin, after, upTo - after).map(({ rec }) => rec),
  };
}

/** The copy on a carrier, checked against the root of its checkpoint when it is longer than that in the home. */
export async function carrierCopy(
  home: Home,
  carrier: Carrier,
  origin: Origin,
  key: SigningKey,
): Promise<OwnCopy | undefined> {
  if (home.origin(origin) === undefined) {
    // Nothing of this log is here: it may have been opened before the backup, or never.
    const file = await carrier.get(`${origin}/checkpoint`);
    if (file === undefined) return undefined;
    home.admit(key.forOrigin(origin).vkey, { own: true });
  }
  const head = await readHead(home, carrier, origin);
  if (head === undefined || head.size === 0) return undefined;
  const known = home.firstCheckpointCovering(origin, head.size);
  // What the home has signed already is compared as the copy in the home.
  if (known?.size === head.size && known.root === head.root) return homeCopy(home, origin);
  const texts = await readAll(carrier, head);
  return {
    head,
    records: async (after, upTo) => texts.slice(after, upTo),
    keep: async (to) => pullOwn(to, carrier, origin),
  };
}

/** Every record of a log; refuses files that do not give the root of the checkpoint. */
async function readAll(carrier: Carrier, { origin, size, root }: Checkpoint): Promise<readonly string[]> {
  const texts: string[] = [];
  for (let tile = 0; tile * TILE_WIDTH < size; tile += 1) {
    const width = Math.min(TILE_WIDTH, size - tile * TILE_WIDTH);
    const file = await carrier.get(`${origin}/${tilePath("entries", tile, width)}`);
    if (file === undefined || file === "unchanged") break;
    texts.push(...decodeEntries(file.bytes));
  }
  if (texts.length === size && LogTree.ofTexts(texts).root().toString("base64") === root) return texts;
  throw new RepriseError(
    "LOG_FILE_DAMAGED",
    `${carrier.url} has a checkpoint of ${origin} with ${size} records, and not the files for it. Restore them, or remove the folder ${origin} there and push again.`,
    { details: { origin, size, url: carrier.url } },
  );
}
