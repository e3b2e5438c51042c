// Directory: a carrier in a folder: a disk, a USB stick, a share.
//
// directory.D1. A file gets its name only when its bytes are synced: by link(), which fails if the name exists, or by rename() under
//   the lock. A crash leaves the old file, the new one or none, and at most a temporary file in `.carrier`.
// directory.D2. Everyone who replaces or removes a file holds the lock (directory-lock.ts), so comparing and replacing are one step.
// directory.D3. Symbolic links are not followed, and only regular files are read: others may write to the folder too. A program
//   that swaps a folder for a link at the same moment can still mislead a writer; give such programs a folder of their own.

import { constants, type Stats } from "node:fs";
import { link, lstat, mkdir, open, readdir, realpath, rename, stat, unlink } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RepriseError, sha256Hex } from "../base/index.ts";
import {
  CARRIER_LIMITS,
  checkPath,
  checkPrefix,
  isFileName,
  tooLong,
  type Carrier,
  type CarrierFile,
  type CarrierLimits,
  type CarrierOptions,
  type CarrierPorts,
  type Etag,
  type GetOptions,
  type ListOptions,
  type PutOptions,
} from "./carrier.ts";
import { withDirectoryLock } from "./directory-lock.ts";
import { FolderWatch } from "./folder-watch.ts";
import { pause, readUntilChanged } from "./waiting.ts";

/** The carrier's own files. No path leads here, because a name of a path does not begin with a dot. */
const OWN = ".carrier";
/** Older temporary files belong to writers that crashed. */
const ABANDONED_MS = 24 * 3_600_000;

/** Opens an existing folder as a carrier: `file:///mnt/stick/history`, or a path. */
export async function openDirectory(url: string, options: CarrierOptions): Promise<DirectoryCarrier> {
  const given = url.startsWith("file:") ? fileURLToPath(url) : url;
  try {
    const root = await realpath(given);
    if ((await stat(root)).isDirectory()) return new DirectoryCarrier(root, options);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw failure(given, "be opened", error);
    throw new RepriseError(
      "CARRIER_UNREACHABLE",
      `The folder ${given} does not exist. Reprise does not create it, because the disk may not be mounted: check the path, then run \`mkdir -p ${given}\`.`,
      { cause: error, details: { url } },
    );
  }
  throw new RepriseError("BAD_CARRIER_URL", `${given} is a file; a carrier needs a folder.`, { details: { url } });
}

export class DirectoryCarrier implements Carrier {
  readonly url: string;
  readonly #root: string;
  readonly #ports: CarrierPorts;
  readonly #limits: CarrierLimits;
  #isSwept = false;

  constructor(root: string, options: CarrierOptions) {
    this.url = pathToFileURL(root).href;
    this.#root = root;
    this.#ports = options;
    this.#limits = { ...CARRIER_LIMITS, ...options.limits };
  }

  async get(path: string, options: GetOptions = {}): Promise<CarrierFile | "unchanged" | undefined> {
    checkPath(path);
    const { after, waitMs = 0, signal, maxBytes = this.#limits.maxBytes } = options;
    signal?.throwIfAborted();
    const file = this.#fileOf(path);
    // Before the first read, so that no change is missed between reading and watching.
    using watch = waitMs > 0 ? new FolderWatch(dirname(file)) : undefined;
    const read = async (): Promise<CarrierFile | "unchanged" | undefined> => {
      watch?.begin();
      const found = await this.#do(`read ${path}`, () => this.#read(path, maxBytes));
      return found !== undefined && found.etag === after ? "unchanged" : found;
    };
    const { pollMs } = this.#limits;
    // With await: the watch ends when this function does.
    return await readUntilChanged(read, options, this.#ports, (leftMs) =>
      pause(this.#ports, Math.min(pollMs, leftMs), signal, watch?.changed),
    );
  }

  async put(path: string, bytes: Uint8Array, options: PutOptions): Promise<Etag | "refused"> {
    checkPath(path);
    options.signal?.throwIfAborted();
    return this.#do(`write ${path}`, async () => {
      const isPut =
        "match" in options && options.match !== null
          ? await this.#replace(path, bytes, options.match)
          : await this.#create(path, bytes);
      return isPut ? sha256Hex(bytes) : "refused";
    });
  }

  async *list(prefix: string, { shallow = false }: ListOptions = {}): AsyncIterable<string> {
    checkPrefix(prefix);
    const entries = await this.#do(`list ${prefix}`, () => this.#entries(prefix));
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (!isFileName(entry.name)) continue;
      if (entry.isFile()) yield `${prefix}${entry.name}`;
      else if (entry.isDirectory() && shallow) yield `${prefix}${entry.name}/`;
      else if (entry.isDirectory()) yield* this.list(`${prefix}${entry.name}/`);
    }
  }

  async remove(path: string): Promise<void> {
    const file = this.#fileOf(checkPath(path));
    await this.#do(`remove ${path}`, async () => {
      if ((await this.#stat(path)) === undefined) return;
      await this.#withLock(async () => {
        await unlink(file).catch(ignore("ENOENT"));
        await syncFolder(dirname(file));
      });
    });
  }

  async close(): Promise<void> {
    // Nothing is open between calls.
  }

  #fileOf(path: string): string {
    return join(this.#root, ...path.split("/"));
  }

  /** directory.D3. Undefined if there is no such file. */
  async #stat(path: string): Promise<Stats | undefined> {
    const file = this.#fileOf(path);
    try {
      const folder = await realpath(dirname(file));
      if (folder !== dirname(file)) throw leaves(path, folder);
      const found = await lstat(file);
      if (found.isFile()) return found;
      throw found.isSymbolicLink() ? leaves(path, "another file") : notAFile(path);
    } catch (error) {
      if (codeOf(error) !== "ENOENT" && codeOf(error) !== "ENOTDIR") throw error;
      // A folder that is gone is not an empty one.
      await stat(this.#root);
      return undefined;
    }
  }

  async #read(path: string, maxBytes: number): Promise<CarrierFile | undefined> {
    if ((await this.#stat(path)) === undefined) return undefined;
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    let handle;
    try {
      handle = await open(this.#fileOf(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw notAFile(path);
      if (found.size > maxBytes) throw tooLong(this.url, path, maxBytes);
      const bytes = new Uint8Array(found.size);
      let filled = 0;
      while (filled < bytes.length) {
        const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      const whole = bytes.subarray(0, filled);
      return { bytes: whole, etag: sha256Hex(whole) };
    } finally {
      await handle.close();
    }
  }

  async #create(path: string, bytes: Uint8Array): Promise<boolean> {
    const file = this.#fileOf(path);
    if ((await this.#stat(path)) !== undefined) {
      // The writer may have crashed before it synced the folder, and the caller relies on the file now.
      await syncFolder(dirname(file));
      return false;
    }
    await this.#makeFolders(path.split("/").slice(0, -1));
    return this.#withTemporary(bytes, async (temporary) => {
      const isNew = await link(temporary, file).then(() => true, ignore("EEXIST"));
      await syncFolder(dirname(file));
      return isNew === true;
    });
  }

  async #replace(path: string, bytes: Uint8Array, match: Etag): Promise<boolean> {
    const file = this.#fileOf(path);
    const isMatch = async (): Promise<boolean> => (await this.#read(path, this.#limits.maxBytes))?.etag === match;
    if (!(await isMatch())) return false;
    return this.#withTemporary(bytes, (temporary) =>
      // directory.D2
      this.#withLock(async () => {
        if (!(await isMatch())) return false;
        await rename(temporary, file);
        await syncFolder(dirname(file));
        return true;
      }),
    );
  }

  /** Creates the folders one by one: `mkdir -p` would follow links. Syncs the parent of each new one. */
  async #makeFolders(names: readonly string[]): Promise<void> {
    let folder = this.#root;
    for (const name of names) {
      const parent = folder;
      folder = join(folder, name);
      const found = await lstat(folder).catch(ignore("ENOENT"));
      if (found?.isDirectory()) continue;
      if (found !== undefined) throw leaves(names.join("/"), "something that is not a folder");
      await mkdir(folder).catch(ignore("EEXIST"));
      await syncFolder(parent);
    }
  }

  /** directory.D1. The temporary file is synced before `use`, and gone afterwards. */
  async #withTemporary<T>(bytes: Uint8Array, use: (temporary: string) => Promise<T>): Promise<T> {
    await this.#makeFolders([OWN]);
    await this.#sweep();
    const temporary = join(this.#root, OWN, this.#ports.random.token());
    try {
      const handle = await open(temporary, "wx", 0o644);
      try {
        await handle.writeFile(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
      return await use(temporary);
    } finally {
      await unlink(temporary).catch(() => undefined);
    }
  }

  async #withLock<T>(act: () => Promise<T>): Promise<T> {
    await this.#makeFolders([OWN]);
    return withDirectoryLock(join(this.#root, OWN, "lock"), this.#ports, this.#limits.responseMs, act);
  }

  /** Removes what crashed writers left, once per carrier. */
  async #sweep(): Promise<void> {
    if (this.#isSwept) return;
    this.#isSwept = true;
    const folder = join(this.#root, OWN);
    for (const name of await readdir(folder)) {
      if (!/^[0-9a-f]{32}$/.test(name)) continue;
      const found = await lstat(join(folder, name)).catch(ignore("ENOENT"));
      if (found === undefined || this.#ports.clock.now() - found.mtimeMs < ABANDONED_MS) continue;
      await unlink(join(folder, name)).catch(ignore("ENOENT"));
    }
  }

  async #entries(prefix: string) {
    const folder = prefix === "" ? this.#root : this.#fileOf(prefix.slice(0, -1));
    try {
      if ((await realpath(folder)) !== folder) throw leaves(prefix, "another folder");
      return await readdir(folder, { withFileTypes: true });
    } catch (error) {
      if (codeOf(error) !== "ENOENT" && codeOf(error) !== "ENOTDIR") throw error;
      await stat(this.#root);
      return [];
    }
  }

  async #do<T>(what: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      throw error instanceof RepriseError ? error : failure(this.#root.split(sep).join("/"), what, error);
    }
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open folders; NTFS journals their changes.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

function ignore(code: string): (error: unknown) => undefined {
  return (error) => {
    if (codeOf(error) !== code) throw error;
  };
}

function leaves(path: string, to: string): RepriseError {
  return new RepriseError(
    "CARRIER_REFUSED",
    `${path} is a symbolic link, or lies behind one (${to}). Reprise does not follow links in a carrier: remove the link.`,
    { details: { path } },
  );
}

function notAFile(path: string): RepriseError {
  return new RepriseError("CARRIER_REFUSED", `${path} is not a regular file, and was not read. Remove it.`, {
    details: { path },
  });
}

/** Full, read-only and forbidden need a person; the rest may be over with the next call. */
function failure(root: string, what: string, error: unknown): RepriseError {
  const code = codeOf(error) ?? "";
  const needsPerson = ["EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "ENOTSUP", "EXDEV", "EMLINK", "EFBIG"].includes(
    code,
  );
  const hint = ["EPERM", "ENOTSUP", "EXDEV", "EMLINK"].includes(code)
    ? " The file system of a carrier needs hard links: use ext4, XFS, Btrfs, ZFS, APFS or NTFS."
    : "";
  return new RepriseError(
    needsPerson ? "CARRIER_REFUSED" : "CARRIER_UNREACHABLE",
    `The carrier ${root} could not ${what}: ${error instanceof Error ? error.message : String(error)}.${hint} Check the disk and its permissions, then repeat the command.`,
    { cause: error, details: { root, code } },
  );
}
