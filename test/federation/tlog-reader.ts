// A reader of tiled logs, written from the specifications alone: C2SP signed-note, tlog-checkpoint and tlog-tiles, RFC 6962. It shares no
// code with src, so that a log which it accepts is one that other implementations accept, too.

import { createHash, createPublicKey, verify } from "node:crypto";

/** Gets a file by its path below the prefix of the log; undefined: there is none. */
export type GetFile = (path: string) => Promise<Uint8Array | undefined>;

export interface ReadHead {
  readonly origin: string;
  readonly size: number;
  /** In base64, as in the checkpoint. */
  readonly root: string;
}

export interface ReadLog extends ReadHead {
  readonly entries: readonly Buffer[];
}

function check(isFine: boolean, problem: string): asserts isFine {
  if (!isFine) throw new Error(problem);
}

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const leafOf = (entry: Uint8Array): Buffer => sha256(Buffer.of(0), entry);
const nodeOf = (left: Uint8Array, right: Uint8Array): Buffer => sha256(Buffer.of(1), left, right);

/** RFC 6962, 2.1: the Merkle Tree Hash, by its recursive definition. */
function treeHash(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return leaves[0]!;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return nodeOf(treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)));
}

interface Verifier {
  readonly name: string;
  readonly id: Buffer;
  verify(text: string, signature: Uint8Array): boolean;
}

function verifierOf(vkey: string): Verifier {
  const at = vkey.indexOf("+");
  const [name, hex] = [vkey.slice(0, at), vkey.slice(at + 1, at + 9)];
  const typed = Buffer.from(vkey.slice(at + 10), "base64");
  check(vkey[at + 9] === "+" && typed.length === 33 && typed[0] === 1, "the vkey is not of an Ed25519 key");
  const id = sha256(Buffer.from(`${name}\n`), typed).subarray(0, 4);
  check(id.toString("hex") === hex, "the id in the vkey is not that of its key");
  const head = Buffer.from("302a300506032b6570032100", "hex");
  const key = createPublicKey({ key: Buffer.concat([head, typed.subarray(1)]), format: "der", type: "spki" });
  return { name, id, verify: (text, signature) => verify(null, Buffer.from(text), key, signature) };
}

/** The text of a note that this key signed. Signatures of other keys are ignored. */
function openNote(note: string, key: Verifier): string {
  const end = note.lastIndexOf("\n\n");
  check(end !== -1 && note.endsWith("\n"), "the note has no signatures");
  const text = note.slice(0, end + 1);
  const lines = note.slice(end + 2, -1).split("\n");
  let isSigned = false;
  for (const line of lines) {
    const [dash, name, encoded = "", ...more] = line.split(" ");
    check(dash === "—" && more.length === 0, "a signature line is malformed");
    const bytes = Buffer.from(encoded, "base64");
    check(bytes.toString("base64") === encoded && bytes.length > 4, "a signature is not base64");
    if (name !== key.name || !bytes.subarray(0, 4).equals(key.id)) continue;
    check(key.verify(text, bytes.subarray(4)), "the signature is not of this text");
    isSigned = true;
  }
  check(isSigned, `the note is not signed by ${key.name}`);
  return text;
}

/** The head that a checkpoint states, with its signature verified. */
export function readHead(note: string, vkey: string): ReadHead {
  const text = openNote(note, verifierOf(vkey));
  const [origin = "", size = "", root = ""] = text.split("\n");
  check(origin !== "", "the checkpoint has no origin");
  check(/^(?:0|[1-9]\d*)$/.test(size), "the checkpoint has no size");
  const bytes = Buffer.from(root, "base64");
  check(bytes.length === 32 && bytes.toString("base64") === root, "the checkpoint has no root");
  return { origin, size: Number(size), root };
}

function pathOf(level: string, index: number, width: number): string {
  let path = String(index % 1000).padStart(3, "0");
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000))
    path = `x${String(rest % 1000).padStart(3, "0")}/${path}`;
  return `tile/${level}/${path}${width < 256 ? `.p/${width}` : ""}`;
}

/** A partial tile may be gone once the full one is there. */
async function getTile(get: GetFile, level: string, index: number, width: number): Promise<Buffer> {
  const bytes = (await get(pathOf(level, index, width))) ?? (await get(pathOf(level, index, 256)));
  check(bytes !== undefined, `${pathOf(level, index, width)} is missing`);
  return Buffer.from(bytes);
}

function widthOf(size: number, level: number, index: number): number {
  return Math.min(256, Math.floor(size / 256 ** level) - index * 256);
}

async function getHashes(get: GetFile, size: number, level: number, index: number): Promise<Buffer[]> {
  const width = widthOf(size, level, index);
  const bytes = await getTile(get, String(level), index, width);
  check(
    bytes.length === width * 32 || bytes.length === 8192,
    `${pathOf(String(level), index, width)} has a wrong size`,
  );
  return Array.from({ length: width }, (_, i) => bytes.subarray(i * 32, i * 32 + 32));
}

async function getEntries(get: GetFile, size: number, index: number): Promise<Buffer[]> {
  const width = widthOf(size, 0, index);
  const bytes = await getTile(get, "entries", index, width);
  const entries: Buffer[] = [];
  for (let at = 0; at < bytes.length && entries.length < width;) {
    check(at + 2 <= bytes.length, "an entry bundle is cut off");
    const end = at + 2 + bytes.readUInt16BE(at);
    check(end <= bytes.length, "an entry bundle is cut off");
    entries.push(bytes.subarray(at + 2, end));
    at = end;
  }
  check(entries.length === width, `${pathOf("entries", index, width)} has ${entries.length} entries, not ${width}`);
  return entries;
}

/** Reads a whole log: checks the signature, every tile and every entry, and that they give the signed root. */
export async function readTiledLog(get: GetFile, vkey: string): Promise<ReadLog> {
  const note = await get("checkpoint");
  check(note !== undefined, "there is no checkpoint");
  const head = readHead(Buffer.from(note).toString(), vkey);
  const { size, root } = head;
  const entries: Buffer[] = [];
  for (let index = 0; index * 256 < size; index += 1) entries.push(...(await getEntries(get, size, index)));
  check(treeHash(entries.map(leafOf)).toString("base64") === root, "the entries do not give the signed root");
  // The hashes that the tiles of a level must have: leaf hashes, then the roots of the full tiles below.
  let expected = entries.map(leafOf);
  for (let level = 0; expected.length > 0; level += 1) {
    const above: Buffer[] = [];
    for (let index = 0; index * 256 < expected.length; index += 1) {
      const hashes = await getHashes(get, size, level, index);
      for (const [i, hash] of hashes.entries())
        check(hash.equals(expected[index * 256 + i]!), `hash ${i} of tile ${index} of level ${level} is wrong`);
      if (hashes.length === 256) above.push(treeHash(hashes));
    }
    expected = above;
  }
  return { ...head, entries };
}

/** Checks that an entry is in the log at `index`, with the tiles of its proof alone. */
export async function checkInclusion(get: GetFile, head: ReadHead, index: number, entry: Uint8Array): Promise<void> {
  check(index >= 0 && index < head.size, "the log has no such entry");
  const subtree = async (level: number, at: number): Promise<Buffer> => {
    if (level % 8 !== 0) return nodeOf(await subtree(level - 1, at * 2), await subtree(level - 1, at * 2 + 1));
    const hashes = await getHashes(get, head.size, level / 8, Math.floor(at / 256));
    return hashes[at % 256]!;
  };
  const range = async (start: number, end: number): Promise<Buffer> => {
    if (start === index && end === index + 1) return leafOf(entry);
    const level = Math.log2(end - start);
    const holds = start <= index && index < end;
    if (Number.isInteger(level) && !holds) return subtree(level, start / 2 ** level);
    let split = 1;
    while (split * 2 < end - start) split *= 2;
    return nodeOf(await range(start, start + split), await range(start + split, end));
  };
  check((await range(0, head.size)).toString("base64") === head.root, `entry ${index} is not in the log`);
}
