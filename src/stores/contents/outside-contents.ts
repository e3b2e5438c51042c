// Outside contents: large contents of a store that are in a folder or a bucket (content-place.ts).
//
// outside-contents.O1. The place is a fact of the store: its row in `meta` has the address and an id, and the place has the same id. A
//   process that passes no address uses that place; one that passes another address is refused, unless it leads to the same place.
// outside-contents.O2. A content is put before the transaction that refers to it is committed. If that commit never happens, its file
//   belongs to a run without a row for it; it goes with the run, or, if there never was such a run, with a sweep.
// outside-contents.O3. The files of a run are removed after the commit that deletes the run. After a crash in between, a sweep finds
//   them.

import { RepriseError, type EpochMs } from "../../base/index.ts";
import type { CarrierPorts } from "../../carriers/index.ts";
import { leastNumberAt, type Problem, type Rekeyed, type RunNumber } from "../../kernel/index.ts";
import type { PayloadCipher } from "../payload-cipher.ts";
import type { RowSession } from "../rows/rows.ts";
import { LARGE_FROM, type NewContent } from "./content-batch.ts";
import type { ContentPlace } from "./content-place.ts";
import { placeAddress } from "./place-address.ts";

/** The key in `meta`. */
export const CONTENTS_KEY = "contents";
const VALUE = ["value"] as const;
const OUTSIDE = ["run", "content"] as const;
const NUMBER = ["run"] as const;
const WHAT = "Opening the place for large payloads";
/** Requests at once. */
const AT_ONCE = 8;
/** A file may belong to a run whose start is not committed yet. */
const YOUNG_MS = 3_600_000;
/** More deleted runs than this are found in the list of all runs with files. */
const FEW_RUNS = 16;
const PAGE = 500;

interface Recorded {
  readonly address: string;
  readonly id: string;
}

export interface OutsideOptions {
  readonly ports: CarrierPorts;
  readonly cipher: () => PayloadCipher | undefined;
  /** The address that the process was given. */
  readonly given: string | undefined;
  readonly isReadOnly: boolean;
}

export class OutsideContents {
  readonly #session: RowSession;
  readonly #options: OutsideOptions;
  #place: Promise<ContentPlace> | undefined;
  #name: string;
  #isOn = false;
  #deleted: RunNumber[] = [];

  private constructor(session: RowSession, options: OutsideOptions, name: string) {
    this.#session = session;
    this.#options = options;
    this.#name = name;
  }

  /** outside-contents.O1. Without a place, contents are in rows of the store, until another process chooses one. */
  static async open(session: RowSession, options: OutsideOptions): Promise<OutsideContents> {
    const given = options.given === undefined ? undefined : placeAddress(options.given);
    const recorded = await readRecorded(session);
    const address = given ?? recorded?.address;
    const outside = new OutsideContents(session, options, address ?? "the store");
    outside.#isOn = address !== undefined;
    // A reader may have no access, and need none.
    if (address === undefined || (options.isReadOnly && (given === undefined || recorded === undefined)))
      return outside;
    const place = await openPlace(address, options.ports);
    try {
      await outside.#agree(place, recorded);
    } catch (error) {
      await place.close();
      throw error;
    }
    outside.#place = Promise.resolve(place);
    outside.#name = place.name;
    return outside;
  }

  /** For messages. */
  get name(): string {
    return this.#name;
  }

  async #agree(place: ContentPlace, recorded: Recorded | undefined): Promise<void> {
    const { random } = this.#options.ports;
    if (recorded === undefined) {
      const id = random.id();
      const owner = await place.claim(id);
      if (owner !== id) throw taken(place);
      const row = { key: CONTENTS_KEY, value: JSON.stringify({ address: place.address, id } satisfies Recorded) };
      const isFirst = await this.#session.transact(WHAT, ({ rows }) => rows.add("meta", row));
      // Another process has recorded a place at the same time.
      if (!isFirst) await this.#agree(place, await readRecorded(this.#session));
      return;
    }
    if ((await place.owner()) !== recorded.id) throw differs(place, recorded);
    if (place.address === recorded.address || this.#options.isReadOnly) return;
    const value = JSON.stringify({ ...recorded, address: place.address });
    await this.#session.transact(WHAT, ({ rows }) => rows.set("meta", [CONTENTS_KEY], { value }));
  }

  #open(): Promise<ContentPlace> {
    this.#place ??= this.#openRecorded().catch((error: unknown) => {
      this.#place = undefined;
      throw error;
    });
    return this.#place;
  }

  async #openRecorded(): Promise<ContentPlace> {
    const recorded = await readRecorded(this.#session);
    if (recorded === undefined)
      throw new RepriseError(
        "STORE_CORRUPT",
        "A payload of this store is outside of it, and the store does not say where. Restore the store from a backup.",
      );
    const place = await openPlace(recorded.address, this.#options.ports);
    this.#name = place.name;
    this.#isOn = true;
    if ((await place.owner()) === recorded.id) return place;
    await place.close();
    throw differs(place, recorded);
  }

  /** Whether a content is put into the place. */
  takes({ text }: NewContent): boolean {
    return this.#isOn && text.length >= LARGE_FROM;
  }

  /** outside-contents.O2 */
  async put(contents: readonly NewContent[]): Promise<void> {
    await this.#use("stored", async (place) => {
      await inParallel(contents, async ({ run, content, text }) => {
        const cipher = this.#options.cipher();
        const bytes = cipher === undefined ? Buffer.from(text) : cipher.encode(text, contextOf(run, content));
        await place.put(run, content, bytes);
      });
    });
  }

  /** The text as it was stored; undefined: there is none. A text that cannot be decoded says why. */
  async get(run: RunNumber, content: string): Promise<string | undefined> {
    const bytes = await this.#use("read", (place) => place.get(run, content));
    if (bytes === undefined) return undefined;
    const cipher = this.#options.cipher();
    if (cipher !== undefined) return cipher.decode(bytes, contextOf(run, content));
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  }

  async #use<T>(what: string, work: (place: ContentPlace) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#open());
    } catch (error) {
      if (!(error instanceof RepriseError) || error.code === "BAD_OPTIONS" || error.code === "DRIVER_MISSING")
        throw error;
      throw new RepriseError(
        "STORE_UNREACHABLE",
        `Large payloads could not be ${what} in ${this.#name}: ${error.message} Workers resume automatically when it is back.`,
        { cause: error, details: { place: this.#name } },
      );
    }
  }

  // ── deletion (outside-contents.O3) ──

  /** The commit that deletes these runs is durable. */
  runsDeleted(runs: readonly RunNumber[]): void {
    if (this.#isOn) this.#deleted.push(...runs);
  }

  /** Removes the files of the runs that were deleted through this process. */
  async removeDeleted(): Promise<void> {
    const deleted = new Set(this.#deleted);
    if (deleted.size === 0) return;
    await this.#use("deleted", async (place) => {
      const found = deleted.size <= FEW_RUNS ? deleted : (await place.runs()).intersection(deleted);
      await inParallel([...found], (run) => place.removeRun(run));
    });
    this.#deleted = this.#deleted.filter((run) => !deleted.has(run));
  }

  /** Removes the files of runs that do not exist. */
  async sweep(now: EpochMs): Promise<void> {
    if (!this.#isOn) return;
    await this.removeDeleted();
    const orphans = await this.#orphans(now);
    await this.#use("deleted", (place) => inParallel(orphans, (run) => place.removeRun(run)));
  }

  async #orphans(now: EpochMs): Promise<readonly RunNumber[]> {
    const old = leastNumberAt(now - YOUNG_MS);
    const found = [...(await this.#use("listed", (place) => place.runs()))].filter((run) => run < old);
    const orphans: RunNumber[] = [];
    for (let from = 0; from < found.length; from += PAGE) {
      const some = found.slice(from, from + PAGE);
      const known = await this.#session.read(WHAT, (rows) => some.map((run) => rows.get("runs", [run], NUMBER)));
      orphans.push(...some.filter((_, index) => known[index] === undefined));
    }
    return orphans;
  }

  /** What `doctor` reports besides the payloads. */
  async check(now: EpochMs): Promise<readonly Problem[]> {
    if (!this.#isOn) return [];
    try {
      return (await this.#orphans(now)).map((run) =>
        problem(
          `${this.#name} has contents of run number ${run}, which does not exist. \`reprise prune\` removes them.`,
        ),
      );
    } catch (error) {
      return [problem(`The place for large payloads cannot be checked: ${(error as Error).message}`)];
    }
  }

  // ── rekey ──

  /** Encodes every content in the place with the current codec. */
  async rekey(): Promise<Rekeyed> {
    let [payloads, unreadable] = [0, 0];
    const cipher = this.#options.cipher();
    if (cipher === undefined || !this.#isOn) return { payloads, unreadable };
    for (const { run, content } of await this.#listed())
      try {
        const again = (bytes: Uint8Array): Uint8Array =>
          cipher.encode(cipher.decodeOrThrow(bytes, contextOf(run, content)), contextOf(run, content));
        if (await this.#use("rekeyed", (place) => place.replace(run, content, again))) payloads += 1;
        else unreadable += 1;
      } catch (error) {
        if (error instanceof RepriseError && error.code === "STORE_UNREACHABLE" && !isUnreadable(error.cause))
          throw error;
        unreadable += 1;
      }
    return { payloads, unreadable };
  }

  async #listed(): Promise<readonly { readonly run: RunNumber; readonly content: string }[]> {
    const listed: { run: RunNumber; content: string }[] = [];
    for (let last = 0; ;) {
      const span = { after: last, limit: PAGE };
      const page = await this.#session.stored.read(WHAT, (rows) => rows.select("run_contents", [], OUTSIDE, span));
      const run = page.at(-1)?.run;
      if (run === undefined) return listed;
      const isWhole = page.length < PAGE;
      const runs = new Set(page.map((row) => row.run));
      for (const one of runs) {
        const outside = await this.#session.stored.read(WHAT, (rows) =>
          rows.select("run_contents", [one], OUTSIDE, { also: { data: null } }),
        );
        listed.push(...outside);
      }
      if (isWhole) return listed;
      last = run;
    }
  }

  async close(): Promise<void> {
    // A run was deleted, and its files were not: a sweep finds them.
    await this.removeDeleted().catch(() => undefined);
    await this.#place?.then(
      (place) => place.close(),
      () => undefined,
    );
  }
}

/** Loaded when it is used: most stores have no place outside. */
async function openPlace(address: string, ports: CarrierPorts): Promise<ContentPlace> {
  return (await import("./content-place.ts")).ContentPlace.open(address, ports);
}

function isUnreadable(error: unknown): boolean {
  return error instanceof RepriseError && (error.code === "PAYLOAD_UNREADABLE" || error.code === "PAYLOAD_KEY_MISSING");
}

function contextOf(run: RunNumber, content: string) {
  return { run, field: "content", place: content } as const;
}

function problem(message: string): Problem {
  return { invariant: "I50 payloads are complete", run: undefined, seq: undefined, message };
}

async function readRecorded(session: RowSession): Promise<Recorded | undefined> {
  const value = await session.read(WHAT, (rows) => rows.get("meta", [CONTENTS_KEY], VALUE)?.value);
  return value === undefined ? undefined : (JSON.parse(value) as Recorded);
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, items.length) }, async () => {
      for (const item of left) await work(item);
    }),
  );
}

function taken(place: ContentPlace): RepriseError {
  return new RepriseError(
    "BAD_OPTIONS",
    `contents: ${place.name} has the large payloads of another store. Choose another folder or prefix.`,
    { details: { place: place.name } },
  );
}

function differs(place: ContentPlace, { address }: Recorded): RepriseError {
  return new RepriseError(
    "BAD_OPTIONS",
    `contents: the large payloads of this store are in ${address}, and ${place.name} is another place. Pass \`contents: ${JSON.stringify(address)}\`, or none. To move them, stop all processes, copy all files, and pass the new address.`,
    { details: { recorded: address, given: place.name } },
  );
}
