// Pull: takes from a carrier what a home lacks of the logs that it admits.
//
// pull.L1. A pull moves exactly the records behind the cursor, and of their contents what is missing. When there is nothing new, it
//   reads one checkpoint per log.
// pull.L2. Only admitted logs are asked for, and nothing is kept without a signature of their keys: the home checks every batch again.
// pull.L3. At most one batch is in memory, and no file is read beyond its limit. A batch ends at a record that names a key: it is taken
//   under the note in which the key before hands over.
// pull.L4. What another site sent wrong stops the pull of that log, and of no other.
// pull.L5. A log that does not extend the one that is here is read to its first difference: two signed heads are the evidence.

import { RepriseError } from "../../base/index.ts";
import type { Carrier, CarrierFile } from "../../carriers/index.ts";
import type { Home } from "../home/home.ts";
import type { OriginState } from "../home/origins.ts";
import { parseCheckpoint, type Checkpoint } from "../log/checkpoint.ts";
import { batchLength, type KeyHistory } from "../log/key-history.ts";
import { nextEpoch, type Origin } from "../log/origin.ts";
import { membersOf, type LogRecord } from "../log/record.ts";
import { CHECKPOINT_PATH, decodeEntries, handoverPath, TILE_WIDTH, tilePath } from "../log/tiles.ts";
import { followEvidence, meetFork } from "./meet-fork.ts";
import { fillContents, PackReader, type Wanted } from "./pull-contents.ts";
import { fitsAny } from "./publish.ts";
import type { SyncState } from "./sync-state.ts";

export interface PullOptions extends Wanted {
  /** The name of the peer, for the history of what was applied. */
  readonly from?: string;
  /** Globs. Default: every admitted log that is not of this site. */
  readonly origins?: readonly string[];
  /** Waits that long for a new checkpoint of the first log. */
  readonly waitMs?: number | undefined;
  /** Looks for contents that were published after their records, and for logs that continue in another epoch. */
  readonly fill?: boolean;
  readonly state?: SyncState | undefined;
  readonly signal?: AbortSignal;
  /** Called after each tile: how many records of the log are through, of how many. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export interface PulledLog {
  readonly origin: Origin;
  /** `absent`: the carrier has no such log. `incomplete`: files under its checkpoint are missing. */
  readonly status: "pulled" | "unchanged" | "absent" | "incomplete" | "forked" | "refused";
  readonly records: number;
  readonly contents: number;
  readonly journals: number;
  /** Of a log that was refused: why. */
  readonly code?: string;
  readonly reason?: string;
}

/** Pulls the admitted logs of a carrier into a home. */
export async function pullFrom(home: Home, carrier: Carrier, options: PullOptions = {}): Promise<readonly PulledLog[]> {
  const { origins = ["*"], fill } = options;
  const pulled: PulledLog[] = [];
  const queue = home.origins().filter(({ id, own }) => !own && fitsAny(origins, id));
  for (let state = queue.shift(); state !== undefined; state = queue.shift()) {
    options.signal?.throwIfAborted();
    const wait = pulled.length === 0 ? options : withoutWait(options);
    pulled.push(await pullLog(home, carrier, state, wait));
    const next = fill === true ? await admitNextEpoch(home, carrier, state) : undefined;
    if (next !== undefined) queue.unshift(next);
  }
  return pulled;
}

/** Takes back a log of this site that a carrier has. */
export async function pullOwn(home: Home, carrier: Carrier, origin: Origin): Promise<void> {
  const state = home.origin(origin);
  if (state !== undefined) await pullLog(home, carrier, state, { journals: "all" });
}

function withoutWait(options: PullOptions): PullOptions {
  return { ...options, waitMs: undefined };
}

async function pullLog(home: Home, carrier: Carrier, state: OriginState, options: PullOptions): Promise<PulledLog> {
  const reader = new LogReader(home, carrier, state.id, options);
  try {
    return await reader.pull();
  } catch (error) {
    // pull.L4
    if (!(error instanceof RepriseError) || error.family !== "federation") throw error;
    return reader.outcome("refused", { code: error.code, reason: error.message });
  }
}

/** A log that was closed continues under the next epoch, with a key that this site has admitted already. */
async function admitNextEpoch(home: Home, carrier: Carrier, { id }: OriginState): Promise<OriginState | undefined> {
  const next = nextEpoch(id);
  if (home.origin(next) !== undefined) return undefined;
  const file = await carrier.get(`${next}/${CHECKPOINT_PATH}`, { maxBytes: MAX_NOTE_BYTES });
  if (file === undefined || file === "unchanged") return undefined;
  const key = home.keys(id).forEpoch(next);
  try {
    key.open(Buffer.from(file.bytes).toString("utf8"));
  } catch {
    return undefined;
  }
  return home.admit(key.current.vkey);
}

const MAX_NOTE_BYTES = 64 * 1024;
const MAX_ENTRIES_BYTES = TILE_WIDTH * (65_535 + 2);
const BATCH_RECORDS = 4_096;
const BATCH_BYTES = 6 * 1024 * 1024;

/** Reads one log of a carrier. */
class LogReader {
  readonly #home: Home;
  readonly #carrier: Carrier;
  readonly #origin: Origin;
  readonly #options: PullOptions;
  #records = 0;
  #contents = 0;
  #journals = 0;

  constructor(home: Home, carrier: Carrier, origin: Origin, options: PullOptions) {
    this.#home = home;
    this.#carrier = carrier;
    this.#origin = origin;
    this.#options = options;
  }

  outcome(status: PulledLog["status"], more: Pick<PulledLog, "code" | "reason"> = {}): PulledLog {
    const counts = { records: this.#records, contents: this.#contents, journals: this.#journals };
    return { origin: this.#origin, status, ...counts, ...more };
  }

  async pull(): Promise<PulledLog> {
    const name = `pull ${this.#origin} ${this.#carrier.url}`;
    const file = await this.#readHead(this.#options.state?.get(name));
    if (file === undefined) return this.outcome("absent");
    if (file !== "unchanged") {
      const stopped = await this.#take(Buffer.from(file.bytes).toString("utf8"));
      if (stopped !== undefined) return stopped;
      this.#options.state?.set(name, file.etag);
    }
    if (this.#options.fill === true || this.#records > 0) {
      const filled = await fillContents(this.#home, this.#carrier, this.#origin, this.#options);
      this.#contents += filled.contents;
      this.#journals += filled.journals;
    }
    return this.outcome(this.#records + this.#contents + this.#journals > 0 ? "pulled" : "unchanged");
  }

  #readHead(after: string | undefined): Promise<CarrierFile | "unchanged" | undefined> {
    const { waitMs, signal } = this.#options;
    return this.#carrier.get(`${this.#origin}/${CHECKPOINT_PATH}`, {
      maxBytes: MAX_NOTE_BYTES,
      ...(after !== undefined && { after }),
      ...(waitMs !== undefined && { waitMs }),
      ...(signal && { signal }),
    });
  }

  /** Takes the log up to a note. Returns why it stopped before. */
  async #take(note: string): Promise<PulledLog | undefined> {
    const { size, origin } = parseCheckpoint(note);
    if (origin !== this.#origin)
      return this.outcome("refused", {
        code: "NOT_ADMITTED",
        reason: `The checkpoint of ${this.#origin} is of ${origin}.`,
      });
    for (;;) {
      const { cursor } = this.#home.origin(this.#origin)!;
      const checkpoint = await this.#nextCheckpoint(note, size, cursor);
      if (checkpoint === undefined) return this.outcome("incomplete");
      const stopped = await this.#takeUpTo(checkpoint, size);
      if (stopped !== undefined || checkpoint.size >= size) return stopped;
    }
  }

  /** pull.L3. The checkpoint to take next: the note, or a handover before it. */
  async #nextCheckpoint(note: string, size: number, cursor: number): Promise<Checkpoint | undefined> {
    const keys: KeyHistory = this.#home.keys(this.#origin);
    try {
      return keys.open(note);
    } catch (error) {
      if (size <= cursor || !(error instanceof RepriseError) || error.code !== "NOT_ADMITTED") throw error;
      const at = await this.#findKeyRecord(cursor, size);
      if (at === undefined) throw error;
      const handover = await this.#carrier.get(`${this.#origin}/${handoverPath(at)}`, { maxBytes: MAX_NOTE_BYTES });
      if (handover === undefined || handover === "unchanged") return undefined;
      const opened = keys.open(Buffer.from(handover.bytes).toString("utf8"));
      if (opened.size !== at) throw error;
      return opened;
    }
  }

  /** The number of the next record that names a key. */
  async #findKeyRecord(after: number, size: number): Promise<number | undefined> {
    for (let from = after; from < size;) {
      const records = await this.#readTile(from, size, size);
      if (records === undefined) return undefined;
      const ops = records.map((text) => membersOf(text) as Pick<LogRecord, "op">);
      const length = batchLength(ops);
      if (ops[length - 1]?.op === "key") return from + length;
      from += records.length;
    }
    return undefined;
  }

  /** The records of one tile after `after`, up to `upTo`; undefined: the file is missing. `size`: that of the carrier's checkpoint. */
  async #readTile(after: number, upTo: number, size: number): Promise<string[] | undefined> {
    const tile = Math.floor(after / TILE_WIDTH);
    const from = tile * TILE_WIDTH;
    const width = Math.min(TILE_WIDTH, size - from);
    const limit = { maxBytes: MAX_ENTRIES_BYTES };
    const path = (wide: number): string => `${this.#origin}/${tilePath("entries", tile, wide)}`;
    let file = await this.#carrier.get(path(width), limit);
    // The log may have grown since its checkpoint was read, and partial tiles may be gone.
    if (file === undefined && width < TILE_WIDTH) file = await this.#carrier.get(path(TILE_WIDTH), limit);
    if (file === undefined || file === "unchanged") return undefined;
    return decodeEntries(file.bytes).slice(after - from, upTo - from);
  }

  async #takeUpTo(checkpoint: Checkpoint, head: number): Promise<PulledLog | undefined> {
    const { cursor, size } = this.#home.origin(this.#origin)!;
    if (checkpoint.size <= size)
      return this.#ingest([], checkpoint, new PackReader(this.#home, this.#carrier, this.#origin, this.#options));
    let batch: string[] = [];
    let packs = new PackReader(this.#home, this.#carrier, this.#origin, this.#options);
    for (let at = cursor; at < checkpoint.size;) {
      this.#options.signal?.throwIfAborted();
      const records = await this.#readTile(at, checkpoint.size, head);
      if (records === undefined || records.length === 0) return this.outcome("incomplete");
      await packs.read(Math.floor(at / TILE_WIDTH), head, records);
      batch.push(...records);
      at += records.length;
      this.#options.onProgress?.(at, head);
      if (
        at < checkpoint.size &&
        batch.length + TILE_WIDTH <= BATCH_RECORDS &&
        packs.bytes + sizeOf(batch) < BATCH_BYTES
      )
        continue;
      const stopped = await this.#ingest(batch, checkpoint, packs);
      if (stopped !== undefined) return stopped;
      batch = [];
      packs = new PackReader(this.#home, this.#carrier, this.#origin, this.#options);
    }
    return undefined;
  }

  async #ingest(records: readonly string[], checkpoint: Checkpoint, packs: PackReader): Promise<PulledLog | undefined> {
    const { contents, journals } = packs;
    const { from } = this.#options;
    const batch = {
      origin: this.#origin,
      records,
      checkpoint,
      contents,
      journals,
      ...(from !== undefined && { from }),
    };
    const { cursor: before, status } = this.#home.origin(this.#origin)!;
    const wasForked = status === "forked";
    const outcome = this.#home.ingest(batch);
    if (outcome.status === "ingested") {
      this.#records += this.#home.origin(this.#origin)!.cursor - before;
      this.#contents += outcome.contents;
      this.#journals += journals.length;
      followEvidence(this.#home, contents, from);
    }
    if (outcome.status === "forked") {
      // Two heads of the same size prove a fork; its place is found in the files.
      if (!wasForked) await meetFork(this.#home, this.#carrier, checkpoint, from);
      return this.outcome("forked");
    }
    if (outcome.status !== "refused") return undefined;
    const { code, reason } = outcome;
    // pull.L5
    if (code === "ROOT_MISMATCH" && (await meetFork(this.#home, this.#carrier, checkpoint, from)))
      return this.outcome("forked");
    return this.outcome("refused", { code, reason });
  }
}

function sizeOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
