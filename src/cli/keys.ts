// Keys: the signing key of this project, and the keys whose signatures it accepts.
//
// cli.K1. `<home>/key` is one line: the name, a colon, the 32 bytes of the seed in base64. The file has the mode 0600; a file that other
//   users can read is refused. REPRISE_KEY has the same text and wins over the file.
// cli.K2. The key is created once: two processes that create it at the same time use the same one.
// cli.K3. `<home>/trusted` has a vkey per line. Empty lines, and lines that begin with `#`, do not count. A file that other users can
//   change is refused.

import { existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { RepriseError, systemRandom } from "../base/index.ts";
import { parseVkey, signingKeyOf, type SigningKey, type VerifyingKey } from "../receipts/index.ts";
import { CommandError } from "./command-error.ts";
import { createHome, homeOf, type HomeOptions } from "./home.ts";

const ENVIRONMENT = "REPRISE_KEY";
const SEED_BYTES = 32;

export interface OwnKey {
  readonly key: SigningKey;
  /** The file it is in, or the environment variable. */
  readonly from: string;
  /** True: it did not exist before. */
  readonly isNew: boolean;
}

/** The signing key of this project; undefined: it has none. */
export function findKey(options: HomeOptions): OwnKey | undefined {
  const given = process.env[ENVIRONMENT];
  if (given) return { key: parseKey(given, ENVIRONMENT), from: ENVIRONMENT, isNew: false };
  const file = keyFile(options);
  if (!existsSync(file)) return undefined;
  refuseMode(file, 0o077, "other users of this machine can read it, so anyone of them can sign as you", "600");
  return { key: parseKey(readText(file), file), from: file, isNew: false };
}

/** The signing key of this project, created if it has none (cli.K2). */
export function getKey(options: HomeOptions, name?: string): OwnKey {
  const found = findKey(options) ?? createKey(options, name ?? defaultName());
  const [actual] = found.key.origin.split("/");
  if (name === undefined || actual === name) return found;
  throw new RepriseError(
    "BAD_OPTIONS",
    `--name: the key in ${found.from} has the name ${actual}, and signatures contain it. Use another --home for a key named ${name}.`,
  );
}

/** The keys whose signatures are accepted: the own one, those of `<home>/trusted`, and those of --key. */
export function admittedKeys(options: HomeOptions & { readonly key?: readonly string[] }): readonly VerifyingKey[] {
  const own = findKey(options);
  const keys = [
    ...(own === undefined ? [] : [own.key]),
    ...trustedKeys(options).map(({ key }) => key),
    ...(options.key ?? []).map((text) => parseVkey(text)),
  ];
  return [...new Map(keys.map((key) => [key.vkey, key])).values()];
}

/** cli.K3 */
export function trustedKeys(options: HomeOptions): readonly { readonly key: VerifyingKey; readonly line: number }[] {
  const file = trustedFile(options);
  if (!existsSync(file)) return [];
  refuseMode(file, 0o022, "other users of this machine can add keys to it", "600");
  return readText(file)
    .split("\n")
    .flatMap((text, index) => {
      if (text.trim() === "" || text.startsWith("#")) return [];
      try {
        return [{ key: parseVkey(text), line: index + 1 }];
      } catch (cause) {
        const { message } = cause as Error;
        throw new RepriseError("BAD_OPTIONS", `Line ${index + 1} of ${file}: ${message}`, { cause });
      }
    });
}

/** False: the file has it already. */
export function trustKey(options: HomeOptions, vkey: string): boolean {
  const key = parseVkey(vkey);
  if (trustedKeys(options).some((one) => one.key.vkey === key.vkey)) return false;
  const file = trustedFile(options);
  makeHome(options);
  const before = existsSync(file) ? readText(file) : "";
  const separator = before === "" || before.endsWith("\n") ? "" : "\n";
  write(file, `${separator}${key.vkey}\n`, "a");
  return true;
}

function keyFile(options: HomeOptions): string {
  return join(homeOf(options), "key");
}

export function trustedFile(options: HomeOptions): string {
  return join(homeOf(options), "trusted");
}

/** cli.K2 */
function createKey(options: HomeOptions, name: string): OwnKey {
  const file = keyFile(options);
  const seed = systemRandom.bytes(SEED_BYTES);
  const key = signingKeyOf(seed, name);
  makeHome(options);
  const temporary = `${file}.${systemRandom.token()}`;
  try {
    write(temporary, `${name}:${Buffer.from(seed).toString("base64")}\n`, "wx");
    linkSync(temporary, file);
    return { key, from: file, isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST")
      throw error instanceof RepriseError ? error : unwritable(file, error);
    return findKey(options)!;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function makeHome(options: HomeOptions): void {
  try {
    createHome(options);
  } catch (error) {
    throw unwritable(homeOf(options), error);
  }
}

function write(file: string, text: string, flag: "a" | "w" | "wx"): void {
  try {
    writeFileSync(file, text, { flag, mode: 0o600 });
  } catch (error) {
    throw unwritable(file, error);
  }
}

function unwritable(path: string, cause: unknown): CommandError {
  return new CommandError(
    "BAD_OPTIONS",
    `The signing key cannot be created: ${path} cannot be written: ${(cause as Error).message}. Name a folder with --home or REPRISE_HOME, pass a key in ${ENVIRONMENT}, or write a bundle without a signature with --unsigned.`,
    `reprise key --home <folder>`,
    { cause },
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new RepriseError("BAD_OPTIONS", `${file} cannot be read: ${(cause as Error).message}.`, { cause });
  }
}

/** Windows has no such modes. */
function refuseMode(file: string, bits: number, why: string, mode: string): void {
  if (process.platform === "win32" || (statSync(file).mode & bits) === 0) return;
  throw new CommandError("BAD_OPTIONS", `${file} is not private: ${why}.`, `chmod ${mode} ${file}`);
}

/** cli.K1. The message never contains the text: it may be a secret. */
function parseKey(text: string, from: string): SigningKey {
  const [, name = "", encoded = ""] = /^([^:\s]+):([A-Za-z0-9+/]{43}=)\s*$/.exec(text) ?? [];
  const seed = Buffer.from(encoded, "base64");
  if (seed.length === SEED_BYTES) return signingKeyOf(seed, name);
  throw new RepriseError(
    "BAD_OPTIONS",
    `${from} does not contain a signing key: expected one line, <name>:<32 bytes in base64>. Restore it, or use another --home: a new key is another signer.`,
  );
}

/** The name of the project's folder, where a key may have it. */
function defaultName(): string {
  const name = basename(process.cwd()).replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  return name === "" ? "reprise" : name.slice(0, 100);
}
