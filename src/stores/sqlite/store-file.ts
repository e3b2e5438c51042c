// Location: the file itself. Where it may lie, who may read it, and whether it is still the one we opened.

import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, statfsSync, statSync } from "node:fs";
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

/** What the file's first page says. */
export interface Header {
  readonly applicationId: number;
  readonly userVersion: number;
  readonly isWal: boolean;
  /** False: the table of tables is empty. */
  readonly hasTables: boolean;
  /** Bytes that are missing at the end. */
  readonly missingBytes: number;
}

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 112;
const WAL_FORMAT = 2;
const LEAF_OF_TABLE = 0x0d;

/** Read without SQLite, which might touch the file; undefined when it is empty. */
export function readHeader(path: string): Header | undefined {
  const bytes = Buffer.alloc(HEADER_BYTES);
  let length: number;
  let size: number;
  try {
    const file = openSync(path, "r");
    try {
      length = readSync(file, bytes, 0, HEADER_BYTES, 0);
      size = fstatSync(file).size;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new RepriseError("STORE_IO", `Cannot read ${path}: check the path and its permissions.`, { cause: error });
  }
  if (length === 0) return undefined;
  if (length < HEADER_BYTES || bytes.toString("latin1", 0, 16) !== MAGIC)
    throw new RepriseError(
      "STORE_CORRUPT",
      `${path} is not a SQLite database; nothing was changed. Name another file.`,
      {
        details: { path },
      },
    );
  // 1 stands for 65,536, which does not fit.
  const pageSize = bytes.readUInt16BE(16) === 1 ? 65_536 : bytes.readUInt16BE(16);
  // SQLite itself goes by the size of the file where the count was written by a program that does not keep it.
  const pages = bytes.readUInt32BE(24) === bytes.readUInt32BE(92) ? bytes.readUInt32BE(28) : 0;
  return {
    applicationId: bytes.readInt32BE(68),
    userVersion: bytes.readInt32BE(60),
    isWal: bytes[19] === WAL_FORMAT,
    hasTables: bytes[100] !== LEAF_OF_TABLE || bytes.readUInt16BE(103) > 0,
    missingBytes: Math.max(0, pages * pageSize - size),
  };
}

/** What SQLite keeps beside a file: the log of commits that are not in it yet, and the index of that log. */
export const COMPANIONS = ["-wal", "-shm"] as const;
/** Beside a file that has not been switched to a log. */
export const ROLLBACK_JOURNAL = "-journal";

/** Tells a file from one that took its place under the same name. */
export interface FileIdentity {
  readonly path: string;
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The file, its log and the index of its log, as they were opened. */
export type OpenFiles = readonly FileIdentity[];

export function identityOf(path: string): FileIdentity | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : { path, dev: stat.dev, ino: stat.ino };
}

/**
 * The log and its index, too, once the connection has them open: SQLite keeps both until the last connection closes, a
 * checkpoint empties them in place. Windows removes and replaces no file that is open.
 */
export function openFilesOf(file: FileIdentity): OpenFiles {
  if (process.platform === "win32") return [file];
  const companions = COMPANIONS.map((suffix) => identityOf(file.path + suffix));
  return [file, ...companions.filter((identity) => identity !== undefined)];
}

export function isStill({ path, dev, ino }: FileIdentity): boolean {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat !== undefined && stat.ino === ino && stat.dev === dev;
}

/** 2 to 3 µs per file, so every transaction can afford it. */
export function checkFiles(opened: OpenFiles): void {
  for (const one of opened) if (!isStill(one)) throw replaced(opened, one);
}

function replaced([file]: OpenFiles, { path }: FileIdentity): RepriseError {
  const what = identityOf(path) === undefined ? "removed" : "replaced";
  const store = file?.path ?? path;
  const message =
    path === store
      ? `${path} was ${what} while it was open; nothing more is written. Restart this process.`
      : `${path}, a part of the store ${store}, was ${what} while the store was open; nothing more is written. Stop every process that uses the store, then start them again: the last one that ends copies what it still has of the log into the file.`;
  return new RepriseError("STORE_REPLACED", message, { details: { path: store, replaced: path } });
}
