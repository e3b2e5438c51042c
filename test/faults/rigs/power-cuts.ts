// Power cuts of a SQLite file: the system calls of a real process are recorded, and cut at any point.
//
// strace records every write, sync and truncation, with its bytes, and every acknowledgment, in order. A cut
// keeps what was synced before it; every other sector of 512 bytes survives or is lost, at random. The real
// store then opens the remaining file.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RandomSource } from "../../replay/random-source.ts";
import { without, type Rig, type Tally, type World } from "../rig.ts";
import { openStore, openSubject } from "../subject.ts";

const PROGRAM = fileURLToPath(new URL("../power-writer.ts", import.meta.url));
const SECTOR = 512;

type Call =
  | { readonly call: "create" | "sync" | "remove"; readonly file: string }
  | { readonly call: "sync folder" }
  | { readonly call: "write"; readonly file: string; readonly at: number; readonly bytes: Buffer }
  | { readonly call: "truncate"; readonly file: string; readonly size: number }
  | { readonly call: "acknowledge"; readonly text: string };

const textOf = (hex: string): Buffer => Buffer.from(hex.replaceAll("\\x", ""), "hex");

/** The recorded calls on the store's own files. */
function readCalls(log: string, folder: string): readonly Call[] {
  const calls: Call[] = [];
  const open = new Map<string, string>();
  const known = new Set(["store.db"]);
  for (const line of log.split("\n")) {
    const match = /^(\w+)\((.*)\) += (-?\d+)/.exec(line);
    if (match === null || Number(match[3]) < 0) continue;
    const [, name = "", given = "", answer = ""] = match;
    const hex = /"((?:\\x[0-9a-f]{2})*)"/.exec(given)?.[1] ?? "";
    const fd = given.split(",")[0] ?? "";
    const file = open.get(fd);
    if (name === "openat") {
      const path = textOf(hex).toString();
      if (path !== folder && dirname(path) !== folder) continue;
      open.set(answer, path === folder ? "" : basename(path));
      if (path === folder || known.has(basename(path)) || !given.includes("O_CREAT")) continue;
      known.add(basename(path));
      calls.push({ call: "create", file: basename(path) });
    } else if (name === "unlink") {
      const path = textOf(hex).toString();
      if (dirname(path) === folder && known.delete(basename(path)))
        calls.push({ call: "remove", file: basename(path) });
    } else if (name === "write" && textOf(hex).toString().startsWith("ack "))
      calls.push({ call: "acknowledge", text: textOf(hex).toString().slice(4).trim() });
    else if (file === undefined) continue;
    else if (name === "close") open.delete(fd);
    else if (name === "pwrite64")
      calls.push({ call: "write", file, at: Number(/(\d+)$/.exec(given)?.[1]), bytes: textOf(hex) });
    else if (name === "ftruncate") calls.push({ call: "truncate", file, size: Number(/(\d+)$/.exec(given)?.[1]) });
    else if (name === "fsync" || name === "fdatasync")
      calls.push(file === "" ? { call: "sync folder" } : { call: "sync", file });
  }
  return calls;
}

/** A growable buffer. */
class Content {
  #bytes: Buffer;
  #size: number;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#size = bytes.length;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  write(at: number, part: Buffer): void {
    const size = Math.max(this.#size, at + part.length);
    if (size > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(Math.max(size, 1 << 20))]);
    part.copy(this.#bytes, at);
    this.#size = size;
  }

  truncate(size: number): void {
    if (size < this.#size) this.#bytes.fill(0, size, this.#size);
    this.#size = Math.min(size, this.#size);
  }
}

/** A file on the disk: its synced bytes, and the writes since its last sync. */
class File {
  readonly #content: Content;
  /** Whether its directory entry is synced. */
  isNamed: boolean;
  #pending: ((content: Content) => void)[] = [];

  constructor(bytes: Buffer, isNamed: boolean) {
    this.#content = new Content(bytes);
    this.isNamed = isNamed;
  }

  write(at: number, bytes: Buffer): void {
    for (let from = 0; from < bytes.length;) {
      const to = Math.min(bytes.length, (Math.floor((at + from) / SECTOR) + 1) * SECTOR - at);
      const part = bytes.subarray(from, to);
      const where = at + from;
      this.#pending.push((content) => content.write(where, part));
      from = to;
    }
  }

  truncate(size: number): void {
    this.#pending.push((content) => content.truncate(size));
  }

  sync(): void {
    for (const change of this.#pending) change(this.#content);
    this.#pending = [];
  }

  /** Its content after a cut. */
  cut(chance: RandomSource): Buffer | undefined {
    if (!this.isNamed && chance.happens(0.5)) return undefined;
    const content = new Content(Buffer.from(this.#content.bytes));
    for (const change of this.#pending) if (chance.happens(0.5)) change(content);
    return content.bytes;
  }
}

class Disk {
  readonly files = new Map<string, File>();
  readonly acknowledged: string[] = [];

  do(call: Call): void {
    if (call.call === "acknowledge") return void this.acknowledged.push(call.text);
    if (call.call === "sync folder") return this.files.forEach((file) => (file.isNamed = true));
    if (call.call === "create") return void this.files.set(call.file, new File(Buffer.alloc(0), false));
    // A file that was removed before the cut may be gone or still exist: the store must handle both.
    if (call.call === "remove") return void this.files.delete(call.file);
    const file = this.files.get(call.file);
    if (file === undefined) return;
    if (call.call === "write") file.write(call.at, call.bytes);
    else if (call.call === "truncate") file.truncate(call.size);
    else file.sync();
  }
}

/** With `durability: "relaxed"` the same cuts lose acknowledged runs, which proves that the rig detects losses. */
export const powerCutsRelaxed: Rig = {
  name: "power-cuts-relaxed",
  title: 'the same with durability "relaxed", which promises nothing here: shows that the rig sees losses',
  shows: "F4",
  stores: ["sqlite"],
  tested: [],
  rounds: 10,
  run: (world) => cutPower(world, "relaxed"),
};

export const powerCuts: Rig = {
  name: "power-cuts",
  title: "power cuts at any call to the system, unsynced sectors kept or lost at random",
  shows: "F4",
  stores: ["sqlite"],
  tested: ["sqlite"],
  rounds: 10,
  obstacle: () => without("strace", "-V"),
  run: (world) => cutPower(world, "full"),
};

async function cutPower(world: World, durability: "full" | "relaxed"): Promise<void> {
  await using subject = await openSubject(world.store);
  await (await openStore(subject)).close();
  const path = join(subject.folder, "store.db");
  const before = readFileSync(path);
  const log = join(subject.folder, "strace.txt");
  const trace = "trace=openat,close,pwrite64,write,fsync,fdatasync,ftruncate,unlink";
  const node = [
    process.execPath,
    "--conditions=reprise-source",
    PROGRAM,
    subject.url,
    world.isShort ? "150" : "600",
    durability,
  ];
  // It ends by a signal, and so does strace.
  spawnSync("strace", ["-qq", "-xx", "-s", "4000000", "-o", log, "-e", trace, ...node], { stdio: "ignore" });
  const calls = readCalls(readFileSync(log, "latin1"), subject.folder);
  const cuts: number[] = [];
  while (world.more()) cuts.push(1 + world.chance.below(calls.length));
  const disk = new Disk();
  disk.files.set("store.db", new File(before, true));
  let done = 0;
  for (const cut of cuts.toSorted((a, b) => a - b)) {
    for (; done < cut; done += 1) disk.do(calls[done]!);
    const folder = join(subject.folder, "after");
    mkdirSync(folder);
    for (const [name, file] of disk.files) {
      const content = name.endsWith("-shm") ? undefined : file.cut(world.chance);
      if (content !== undefined) writeFileSync(join(folder, name), content);
    }
    await checkAfter(join(folder, "store.db"), disk.acknowledged, world.tally);
    rmSync(folder, { recursive: true });
    world.tally.add("power cuts");
  }
  world.tally.add("calls to the system recorded", calls.length);
}

async function checkAfter(path: string, acknowledged: readonly string[], tally: Tally): Promise<void> {
  if (!existsSync(path)) return tally.lost("the file itself");
  const store = await openStore({ url: `sqlite:${path}` });
  for (const { invariant, message } of await store.check()) tally.broken(`${invariant}: ${message}`);
  const present = new Map((await store.listRuns({ limit: 10_000 })).map(({ id, status }) => [id, status]));
  for (const text of acknowledged) {
    const [what = "", id = ""] = text.split(" ");
    const status = present.get(id);
    if (status === undefined) tally.lost(`run ${id} after a power cut`);
    else if (what === "ended" && status !== "completed") tally.lost(`the end of ${id} after a power cut`);
  }
  tally.add("acknowledged", acknowledged.length);
  await store.close();
}
