// Publisher: puts the contents of runs into the home, then logs their statements (take-own.T4).

import type { RunNumber, RunRecord, Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import type { Content } from "../log/content.ts";
import type { LogRecord } from "../log/record.ts";
import { memoAnswersOf } from "../work/memo-answer.ts";
import { appendOwn, type NewRecord } from "./own-log.ts";
import { publishedContents, type PublishedContents, type PublishedForm } from "./published-run.ts";

/** The records of a run that are to be logged. */
interface Pending {
  readonly run: RunNumber;
  /** What is logged, in order. */
  readonly contents: readonly Content[];
  readonly claim: Content;
  readonly journal: PublishedContents["journal"];
  /** The keys of the run that are in the log. */
  readonly known: ReadonlySet<string>;
}

/** How many runs one write logs. */
const BATCH = 200;
/** Of journals in memory. */
const BATCH_BYTES = 8 * 1024 * 1024;
const PAGE = 1_000;

export class Publisher {
  readonly #store: Store;
  readonly #home: Home;
  readonly #key: SigningKey;
  readonly #form: PublishedForm;
  #pending: Pending[] = [];
  #bytes = 0;
  /** Rows of the log that the caller has read. */
  #read = 0;
  /** How many statements were logged. */
  published = 0;
  /** Runs that the home does not take, because they exceed a limit. */
  readonly refused = new Set<RunNumber>();

  constructor(store: Store, home: Home, key: SigningKey, form: PublishedForm) {
    this.#store = store;
    this.#home = home;
    this.#key = key;
    this.#form = form;
  }

  /** `runKey`: the key of its record in the log; `read`: how many rows the caller has read, and found these keys of the run in. */
  async add(record: RunRecord, runKey: string, read: number, published: readonly string[] = []): Promise<void> {
    const { statement, claim, runRecord, journal } = await publishedContents(
      this.#store,
      record,
      this.#key,
      this.#form,
      runKey,
    );
    const answers = this.#form === "full" ? await memoAnswersOf(this.#store, record, this.#key) : [];
    this.#bytes += journal.lines.length;
    const known = new Set([runKey, ...published]);
    this.#pending.push({ run: record.run, contents: [runRecord, statement, ...answers], claim, journal, known });
    this.#read = read;
    if (this.#pending.length >= BATCH || this.#bytes >= BATCH_BYTES) await this.flush();
  }

  /** Logs what was added, after its contents are in the home (take-own.T4). */
  async flush(): Promise<void> {
    const pending = this.#putAll(this.#pending);
    [this.#pending, this.#bytes] = [[], 0];
    if (pending.length === 0) return;
    let count = 0;
    await appendOwn(this.#store, this.#key, async ({ rows }) => {
      const logged = await this.#keysAfter(this.#read, rows);
      count = 0;
      const records = pending.flatMap(({ run, contents, known }) => {
        const isLogged = (key: string): boolean => known.has(key) || logged.has(`${run} ${key}`);
        // A run record that another key made has another nonce: the one that is given away is logged as well.
        const missing = contents.filter(({ key }) => !isLogged(key));
        if (missing.length > 0) count += 1;
        return missing.map(({ key }): NewRecord => ({ body: { op: "put", k: key }, run }));
      });
      return { records };
    });
    this.published += count;
  }

  /** Those whose contents are in the home now. One that the home does not take does not keep the others out. */
  #putAll(pending: readonly Pending[]): readonly Pending[] {
    if (pending.length === 0) return [];
    const contents = pending.flatMap((one) => [...one.contents, one.claim]);
    const { status } = this.#home.putContents(contents, { journals: pending.map(({ journal }) => journal) });
    if (status === "stored") return pending;
    if (pending.length > 1) return pending.flatMap((one) => this.#putAll([one]));
    for (const { run } of pending) this.refused.add(run);
    return [];
  }

  /** What other processes have logged meanwhile. */
  async #keysAfter(after: number, size: number): Promise<ReadonlySet<string>> {
    const keys = new Set<string>();
    for (let at = after; at < size;) {
      const rows = await this.#store.readLog(at, PAGE);
      if (rows.length === 0) break;
      for (const { run, rec } of rows) if (run !== undefined) keys.add(`${run} ${(JSON.parse(rec) as LogRecord).k}`);
      at = rows.at(-1)!.n;
    }
    return keys;
  }
}
