// Meet fork: a log on a carrier that is not the log here.
//
// meet-fork.M1. The hashes of the other log are compared with those here; two signed heads that do not extend each other are evidence.
//   A carrier whose files do not give its own checkpoint is damaged, and proves nothing.
// meet-fork.M2. Evidence is logged by who finds it, as a content that every peer may have. A site that pulls that log quarantines as well.

import { RepriseError } from "../../base/index.ts";
import type { Carrier } from "../../carriers/index.ts";
import type { Home } from "../home/home.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import type { Content } from "../log/content.ts";
import { originOfEvidence } from "../home/fork-evidence.ts";
import type { Origin } from "../log/origin.ts";
import { decodeTile, TILE_WIDTH, tilePath } from "../log/tiles.ts";
import { EVIDENCE_TYPE } from "./publish.ts";

/** A longer log is not compared: its hashes would not fit into memory. */
const MAX_COMPARED = 4_000_000;

/** meet-fork.M1. Whether the log forked. */
export async function meetFork(home: Home, carrier: Carrier, checkpoint: Checkpoint, from?: string): Promise<boolean> {
  const leaves = await readLeaves(carrier, checkpoint.origin, checkpoint.size);
  if (leaves === undefined) return false;
  try {
    return home.compareBranch(checkpoint.origin, checkpoint, leaves, from).status === "forked";
  } catch (error) {
    if (isFromOthers(error)) return false;
    throw error;
  }
}

/** The hashes of the records of a log, from its tiles of level 0; undefined: one is missing. */
export async function readLeaves(carrier: Carrier, origin: Origin, size: number): Promise<Buffer[] | undefined> {
  if (size > MAX_COMPARED) return undefined;
  const leaves: Buffer[] = [];
  for (let tile = 0; tile * TILE_WIDTH < size; tile += 1) {
    const width = Math.min(TILE_WIDTH, size - tile * TILE_WIDTH);
    const limit = { maxBytes: TILE_WIDTH * 32 };
    const file = await carrier.get(`${origin}/${tilePath(0, tile, width)}`, limit);
    if (file === undefined || file === "unchanged") return undefined;
    try {
      leaves.push(...decodeTile(file.bytes, width));
    } catch {
      return undefined;
    }
  }
  return leaves;
}

/** meet-fork.M2. Contents that are evidence of forks are followed; what proves nothing is ignored. */
export function followEvidence(home: Home, contents: readonly Content[], from?: string): void {
  for (const { type, bytes } of contents) {
    if (type !== EVIDENCE_TYPE) continue;
    const text = Buffer.from(bytes).toString("utf8");
    const origin = originOfEvidence(text);
    const state = origin === undefined ? undefined : home.origin(origin);
    // Of a log that forked already, too: sites that have the same evidence must keep the same records, so the first place counts.
    if (state === undefined || state.own) continue;
    try {
      home.takeForkEvidence(text, from);
    } catch (error) {
      if (!isFromOthers(error)) throw error;
    }
  }
}

/** What another site sent wrong. */
function isFromOthers(error: unknown): boolean {
  if (error instanceof RepriseError) return error.family === "federation";
  return error instanceof Error && error.constructor.name === "Refusal";
}
