// Location: the file itself. Where it may lie, who may read it, and whether it is still the one we opened.

import { closeSync, constants, mkdirSync, openSync, readSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { RepriseError } from "../../base/index.ts";

export const MEMORY = ":memory:";

/** Shared memory, on which WAL rests, does not work across machines. Numbers are those of Linux' statfs(2). */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x5346414f, "AFS"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x00c36400, "Ceph"],
  [0x47504653, "GPFS"],
  [0x0bd00bd0, "Lustre"],
]);

/** Makes the folder and an empty file, readable by their owner only, where they are missing. */
export function prepareFile(path: string): void {
  const folder = dirname(path);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    refuseNetwork(folder, path);
    closeSync(openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    if (error instanceof RepriseError) throw error;
    throw new RepriseError("STORE_IO", `Cannot create ${path}: check the path and the permissions of ${folder}.`, {
      cause: error,
    });
  }
}

export function refuseNetwork(folder: string, path: string, type: number = statfsSync(folder).type): void {
  if (process.platform !== "linux") return;
  const network = NETWORK_FILE_SYSTEMS.get(type >>> 0);
  if (network === undefined) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `${path} lies on ${network}, a network file system, where SQLite cannot keep commits apart. Move it to a local disk, or use a database server.`,
    { details: { path, fileSystem: network } },
  );
}

export interface Header {
  readonly applicationId: number;
  readonly userVersion: number;
}

const MAGIC = "SQLite format 3\0";

/** What the file's first page says, read without SQLite, which might touch the file; undefined when it is empty. */
export function readHeader(path: string): Header | undefined {
  const bytes = Buffer.alloc(100);
  let length: number;
  try {
    const file = openSync(path, "r");
    try {
      length = readSync(file, bytes, 0, 100, 0);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new RepriseError("STORE_IO", `Cannot read ${path}: check the path and its permissions.`, { cause: error });
  }
  if (length === 0) return undefined;
  if (length < 100 || bytes.toString("latin1", 0, 16) !== MAGIC)
    throw new RepriseError(
      "STORE_CORRUPT",
      `${path} is not a SQLite database; nothing was changed. Name another file.`,
      {
        details: { path },
      },
    );
  return { applicationId: bytes.readInt32BE(68), userVersion: bytes.readInt32BE(60) };
}

/** Tells a file from one that took its place under the same name. */
export interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

export function identityOf(path: string): FileIdentity | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : { dev: stat.dev, ino: stat.ino };
}

/** 2 to 3 µs, so every transaction can afford it. */
export function checkIdentity(path: string, opened: FileIdentity): void {
  const found = identityOf(path);
  if (found !== undefined && found.ino === opened.ino && found.dev === opened.dev) return;
  throw new RepriseError(
    "STORE_REPLACED",
    `${path} was ${found === undefined ? "removed" : "replaced"} while it was open; nothing more is written. Restart this process.`,
    { details: { path } },
  );
}
