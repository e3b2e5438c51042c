// Key file: the signing key of a site, `<home>/key`.
//
// key-file.K1. The file is one line: the name, a colon, the 32 bytes of the seed in base64. The file has the mode 0600; a file that other
//   users can read is refused. REPRISE_KEY has the same text and wins over the file.
// key-file.K2. The key is created once: two processes that create it at the same time use the same one.
// key-file.K3. A rotated key keeps the origin of the first one: in its line the vkey of the first one stands in place of the name. Other
//   sites know this one by that vkey.
// key-file.K4. A rotation writes the next key into `<home>/key.next` before the log names it, and renames that file afterwards. A
//   process that finds the log naming the key of `key.next` finishes the rename, so the private half is never lost. The bytes of a key
//   are on the disk before its file has its name.

import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { RepriseError, systemRandom } from "../base/index.ts";
import { parseVkey, signingKeyOf, type SigningKey } from "../receipts/index.ts";

/** The key of a site, as its file has it. */
export interface SiteKey {
  readonly key: SigningKey;
  /** The vkey of the first key: what other sites admit. */
  readonly vkey: string;
}

export const KEY_VARIABLE = "REPRISE_KEY";
const SEED_BYTES = 32;

export interface OwnKey extends SiteKey {
  /** The file it is in, or the environment variable. */
  readonly from: string;
  /** True: it did not exist before. */
  readonly isNew: boolean;
}

/** The signing key of a site; undefined: it has none. */
export function findKeyIn(home: string): OwnKey | undefined {
  const given = process.env[KEY_VARIABLE];
  if (given) return { ...parseKey(given, KEY_VARIABLE), from: KEY_VARIABLE, isNew: false };
  const file = keyFile(home);
  if (!existsSync(file)) return undefined;
  refuseMode(file);
  return { ...parseKey(readFileSync(file, "utf8"), file), from: file, isNew: false };
}

/** The signing key of a site, created if it has none (key-file.K2). */
export function getKeyIn(home: string, name?: string): OwnKey {
  const found = findKeyIn(home) ?? createKey(home, name ?? defaultName());
  const [actual] = found.key.origin.split("/");
  if (name === undefined || actual === name) return found;
  throw new RepriseError(
    "BAD_OPTIONS",
    `The key in ${found.from} has the name ${actual}, and signatures contain it. Use another home for a key named ${name}.`,
  );
}

/** The folder of a site, private, and with a .gitignore: what is in it must not be published. */
export function createHomeFolder(home: string): void {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const ignore = join(home, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { mode: 0o600 });
}

/** key-file.K4. The next key of a site, in `<home>/key.next`; the one that is there already, if there is one. */
export function nextKey(home: string, { vkey }: SiteKey): SiteKey {
  const file = nextFile(home);
  if (!existsSync(file)) create(file, vkey, systemRandom.bytes(SEED_BYTES));
  return findNextKey(home)!;
}

/** The key of `key.next`; undefined: no rotation was begun. */
export function findNextKey(home: string): SiteKey | undefined {
  const file = nextFile(home);
  if (!existsSync(file)) return undefined;
  refuseMode(file);
  return parseKey(readFileSync(file, "utf8"), file);
}

/** key-file.K4. The log names the key of `key.next`: it signs from now on. */
export function finishRotation(home: string): void {
  try {
    renameSync(nextFile(home), keyFile(home));
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

export function keyFile(home: string): string {
  return join(home, "key");
}

function nextFile(home: string): string {
  return join(home, "key.next");
}

/** key-file.K2 */
function createKey(home: string, name: string): OwnKey {
  const file = keyFile(home);
  createHomeFolder(home);
  const isNew = create(file, name, systemRandom.bytes(SEED_BYTES));
  return { ...findKeyIn(home)!, isNew };
}

/** False: the file is there already. */
function create(file: string, name: string, seed: Uint8Array): boolean {
  parseKey(`${name}:${Buffer.from(seed).toString("base64")}`, file);
  const temporary = `${file}.${systemRandom.token()}`;
  try {
    writeFileSync(temporary, `${name}:${Buffer.from(seed).toString("base64")}\n`, {
      flag: "wx",
      mode: 0o600,
      flush: true,
    });
    linkSync(temporary, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Windows has no such modes. */
function refuseMode(file: string): void {
  if (process.platform === "win32" || (statSync(file).mode & 0o077) === 0) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${file} is not private: other users of this machine can read it, so anyone of them can sign as you. Run \`chmod 600 ${file}\`.`,
  );
}

/** key-file.K1. The message never contains the text: it may be a secret. */
export function parseKey(text: string, from: string): SiteKey {
  const [, name = "", encoded = ""] = /^([^:\s]+):([A-Za-z0-9+/]{43}=)\s*$/.exec(text) ?? [];
  const seed = Buffer.from(encoded, "base64");
  if (seed.length !== SEED_BYTES)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${from} does not contain a signing key: expected one line, <name>:<32 bytes in base64>. Restore it, or use another home: a new key is another signer.`,
    );
  if (!name.includes("+")) {
    const key = signingKeyOf(seed, name);
    return { key, vkey: key.vkey };
  }
  // key-file.K3
  const { origin, vkey } = parseVkey(name);
  return { key: signingKeyOf(seed, origin.split("/")[0]!).forOrigin(origin), vkey };
}

/** The name of the project's folder, where a key may have it. */
function defaultName(): string {
  const name = basename(process.cwd()).replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  return name === "" ? "reprise" : name.slice(0, 100);
}
