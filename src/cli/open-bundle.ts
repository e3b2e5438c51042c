// Open bundle: the lines of a bundle from a file: plain, in a page (--html), or encrypted (--to).
//
// open-bundle.O1. A plain file is read in place. Lines that are in a page or encrypted are first written to a private temporary file, so
//   that they can be read more than once; nothing is read of an encrypted file before all of it has been authenticated.

import { createReadStream, createWriteStream, statSync } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { RepriseError } from "../base/index.ts";
import type { BundleInput } from "../receipts/index.ts";
import { AGE_HEAD, decrypted } from "./age.ts";
import { PAGE_HEAD, pageLines } from "./bundle-page.ts";

export interface OpenBundleOptions {
  /** The file of an age identity, from --identity. */
  readonly identity?: string;
}

export interface OpenedBundle extends BundleInput, AsyncDisposable {
  /** As it was named, for messages. */
  readonly path: string;
}

const CHUNK = 256 * 1024;

/** Opens a bundle; `-` is standard input. */
export async function openBundle(path: string, options: OpenBundleOptions = {}): Promise<OpenedBundle> {
  const source = path === "-" ? process.stdin : pipeOf(path);
  const folders: string[] = [];
  const dispose = async (): Promise<void> => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  };
  /** open-bundle.O1 */
  const keep = async (bytes: AsyncIterable<Uint8Array>): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), "reprise-bundle-"));
    folders.push(folder);
    const file = join(folder, "lines");
    await pipeline(bytes, createWriteStream(file, { mode: 0o600, flags: "wx" }));
    return file;
  };
  try {
    let file = source === undefined ? path : await keep(source);
    if ((await headOf(file)).startsWith(AGE_HEAD)) {
      if (options.identity === undefined)
        throw new RepriseError("USAGE", `${path} is encrypted. Name the file of your age identity with --identity.`);
      file = await keep(decrypted(path, inputOf(file).read(0), options.identity));
    }
    if ((await headOf(file)).startsWith(PAGE_HEAD)) file = await keep(pageLines(inputOf(file)));
    return { path, ...inputOf(file), [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** The stream of a named pipe, which can be read only once; undefined: it is a file. */
function pipeOf(path: string): AsyncIterable<Uint8Array> | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new RepriseError("USAGE", `There is no file ${path}.`);
  if (stat.isDirectory()) throw new RepriseError("USAGE", `${path} is a folder. Name a bundle in it.`);
  return stat.isFile() ? undefined : createReadStream(path);
}

function inputOf(file: string): BundleInput {
  return { read: (start) => createReadStream(file, { start, highWaterMark: CHUNK }) };
}

async function headOf(file: string): Promise<string> {
  const handle = await open(file).catch((cause: unknown) => {
    throw new RepriseError("USAGE", `${file} cannot be read: ${(cause as Error).message}.`, { cause });
  });
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
    return buffer.subarray(0, bytesRead).toString("latin1");
  } finally {
    await handle.close();
  }
}
