// Checkpoint root: the root of a checkpoint as bytes.

import type { Checkpoint } from "../log/checkpoint.ts";

export type { Checkpoint };

export function checkpointRoot({ root }: Pick<Checkpoint, "root">): Buffer {
  return Buffer.from(root, "base64");
}
