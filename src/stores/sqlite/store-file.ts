// Store file: creates the file of a store, reads its header, and detects that the file was replaced.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { RepriseError, shellWord } from "../../base/index.ts";

export const MEMORY = ":memory:";

/** WAL needs shared memory, which does not work across machines. The numbers are those of statfs(2) on Linux. */
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

/**
 * Creates an empty file when it is missing, and its folder only if the caller asks for it: with a wrong path, a process would
 * work on a new, empty store, and nothing would say so. Only their owner can read them.
 */
export function prepareFile(path: string, mkdir: boolean): void {
  const folder = dirname(path);
  try {
    if (mkdir) mkdirSync(folder, { recursive: true, mode: 0o700 });
    else if (!existsSync(folder)) throw noFolder(folder, path);
    refuseNetwork(folder, path);
    closeSync(openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    if (error instanceof RepriseError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new RepriseError(
      "STORE_IO",
      `Cannot create ${path} (${code}). Check the path and the permissions of ${folder}.`,
      {
        cause: error,
      },
    );
  }
}

function noFolder(folder: string, path: string): RepriseError {
  return new RepriseError(
    "STORE_FOLDER_MISSING",
    `Cannot create ${path}: there is no folder ${folder}. Check the path. To create the folder, run \`mkdir -p ${shellWord(folder)}\`, or add ?mkdir=1 to the store URL.`,
    { details: { path, folder } },
  );
}

export function refuseNetwork(folder: string, path: string, type: number = statfsSync(folder).type): void {
  if (process.platform !== "linux") return;
  const network = NETWORK_FILE_SYSTEMS.get(type >>> 0);
  if (network === undefined) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `${path} is on ${network}, a network file system. SQLite cannot lock files there reliably, so commits could be lost. Move the file to a local disk, or use a database server (--store postgres://…).`,
    { details: { path, fileSystem: network } },
  );
}

/** The fields of the file's first page. */
export interface Header {
  readonly applicationId: number;
  readonly userVersion: number;
  readonly isWal: boolean;
  /** False when the schema table is empty. */
  readonly hasTables: boolean;
  /** How many bytes are missing at the end. */
  readonly missingBytes: number;
}

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 112;
const WAL_FORMAT = 2;
const LEAF_OF_TABLE = 0x0d;

/** Reads without SQLite, which may change the file. Undefined when the file is empty. */
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
    const { code } = error as NodeJS.ErrnoException;
    throw new RepriseError("STORE_IO", `Cannot read ${path} (${code}). Check the path and its permissions.`, {
      cause: error,
    });
  }
  if (length === 0) return undefined;
  if (length < HEADER_BYTES || bytes.toString("latin1", 0, 16) !== MAGIC)
    throw new RepriseError(
      "STORE_CORRUPT",
      `${path} is not a SQLite database. Nothing was changed. Use another file.`,
      {
        details: { path },
      },
    );
  // 1 means 65,536, which does not fit into two bytes.
  const pageSize = bytes.readUInt16BE(16) === 1 ? 65_536 : bytes.readUInt16BE(16);
  // SQLite, too, ignores the count when the program that wrote it last did not maintain it.
  const pages = bytes.readUInt32BE(24) === bytes.readUInt32BE(92) ? bytes.readUInt32BE(28) : 0;
  return {
    applicationId: bytes.readInt32BE(68),
    userVersion: bytes.readInt32BE(60),
    isWal: bytes[19] === WAL_FORMAT,
    hasTables: bytes[100] !== LEAF_OF_TABLE || bytes.readUInt16BE(103) > 0,
    missingBytes: Math.max(0, pages * pageSize - size),
  };
}

/** The files next to a database: the log of commits that are not in the file yet, and the index of that log. */
export const INDEX = "-shm";
export const COMPANIONS = ["-wal", INDEX] as const;
/** The file next to a database that is not in WAL mode. */
export const ROLLBACK_JOURNAL = "-journal";

/** Identifies a file, so that another file under the same path is noticed. */
export interface FileIdentity {
  readonly path: string;
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The file, its log and the index of its log, as the connection opened them. */
export type OpenFiles = readonly FileIdentity[];

export function identityOf(path: string): FileIdentity | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : { path, dev: stat.dev, ino: stat.ino };
}

/**
 * Called once the connection has the log and its index open: SQLite keeps both until the last connection closes, and a checkpoint
 * empties them in place. On Windows an open file cannot be removed or replaced.
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

/** Takes 2 to 3 µs per file, so that every transaction can run it. */
export function checkFiles(opened: OpenFiles): void {
  for (const one of opened) if (!isStill(one)) throw replaced(opened, one);
}

function replaced([file]: OpenFiles, { path }: FileIdentity): RepriseError {
  const what = identityOf(path) === undefined ? "removed" : "replaced";
  const store = file?.path ?? path;
  const message =
    path === store
      ? `${path} was ${what} while this process had it open. The process writes nothing more. Restart this process.`
      : `${path}, a part of the store ${store}, was ${what} while the store was open. The process writes nothing more. Stop every process that uses the store, then start them again: the last process to stop copies its part of the log into the file.`;
  return new RepriseError("STORE_REPLACED", message, { details: { path: store, replaced: path } });
}
