// Free space: how many bytes this user can still write to the disk of a store's file.

import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { DiskSpace } from "../../kernel/index.ts";
import { MEMORY } from "./store-file.ts";

/** Undefined: the store is in memory, or the system does not tell. */
export async function freeSpace(path: string): Promise<DiskSpace | undefined> {
  if (path === MEMORY) return undefined;
  const folder = dirname(path);
  try {
    const { bavail, bsize } = await statfs(folder);
    return { folder, freeBytes: bavail * bsize };
  } catch {
    return undefined;
  }
}
