// Checks: what must hold when all processes are idle. Apart from the store's `check`, none of this is the engine's own code.

import { decode } from "../../src/base/index.ts";
import {
  hasEnded,
  isTerminal,
  type Entry,
  type Outcome,
  type OutcomeOf,
  type RunRecord,
  type Store,
  type Write,
} from "../../src/kernel/index.ts";
import type { Witness } from "./process-store.ts";
import type { RunEnd } from "./part.ts";
import type { EventLoop } from "./scheduler.ts";

/** The commits that stores acknowledged, to be found in the journals later. */
export class Ledger implements Witness {
  #entries: { readonly process: string; readonly run: number; readonly entry: Entry }[] = [];
  /** The tokens that items were claimed with, as far as acknowledged, oldest first. */
  readonly #issued = new Map<string, string[]>();
  readonly #stale: string[] = [];
  /** The rollbacks of history when a process started, when it last detected one, and the time before that. */
  readonly #processes = new Map<EventLoop, { readonly since: number; noticed: number; before: number }>();
  /** By number, id and generation: a start that history lost may be repeated as it was. */
  readonly #numbers = new Map<string, number>();
  readonly #isInOrder: boolean;
  commits = 0;
  /** The number of rollbacks of history. */
  epoch = 0;

  /** `isInOrder`: writes are recorded in commit order, not in the order of the responses, which a network may change. */
  constructor(isInOrder: boolean) {
    this.#isInOrder = isInOrder;
  }

  wrote(process: string, write: Write, outcome: Outcome): void {
    this.commits += 1;
    if (this.#isInOrder) this.#watchTokens(process, write, outcome);
    if (write.write !== "turn" || !("status" in outcome) || outcome.status !== "committed") return;
    for (const entry of write.entries) this.#entries.push({ process, run: write.run, entry });
  }

  /** rules.I14. The end of an item is accepted only from the worker that claimed it last. */
  #watchTokens(process: string, write: Write, outcome: Outcome): void {
    const issue = (run: number, item: string, token: string): void => {
      const tokens = this.#issued.get(`${run} ${item}`) ?? [];
      this.#issued.set(`${run} ${item}`, tokens);
      tokens.push(token);
    };
    if (write.write === "claim-items")
      for (const { run, item, token } of (outcome as OutcomeOf<typeof write>).items) issue(run, item, token);
    if (!("status" in outcome) || outcome.status !== "committed") return;
    if (write.write === "turn")
      for (const { item, claim } of write.items) if (claim !== undefined) issue(write.run, item, claim.token);
    if (write.write !== "end-item" && write.write !== "turn") return;
    for (const { item, token } of write.write === "turn" ? write.finished : [write]) {
      const tokens = this.#issued.get(`${write.run} ${item}`) ?? [];
      if (tokens.includes(token) && tokens.at(-1) !== token)
        this.#stale.push(
          `I14 run ${write.run}: the end of ${item} was accepted from ${process} under a token that is not the last`,
        );
    }
  }

  /** Commits that the database lost need not be found again. */
  rolledBack(before: ReadonlyMap<number, readonly Entry[]>, after: ReadonlyMap<number, readonly Entry[]>): void {
    this.epoch += 1;
    this.#entries = this.#entries.filter(
      ({ run, entry }) => !isThere(before.get(run), entry) || isThere(after.get(run), entry),
    );
    // An earlier token is valid again.
    this.#issued.clear();
  }

  began(loop: EventLoop): void {
    this.#processes.set(loop, { since: this.epoch, noticed: this.epoch, before: this.epoch });
  }

  noticed(loop: EventLoop): void {
    const process = this.#processes.get(loop);
    if (process === undefined || process.noticed === this.epoch) return;
    process.before = process.noticed;
    process.noticed = this.epoch;
  }

  /** rules.I39. When one process has detected and recorded a rollback, every other live process detects it, too. */
  *unnoticed(): Iterable<string> {
    const alive = [...this.#processes].filter(([loop, { since }]) => !loop.isDead && since < this.epoch);
    // A process that missed the earlier rollback may have detected this one.
    const isOfThisCut = alive.some(([, each]) => each.noticed === this.epoch && each.before === this.epoch - 1);
    if (!isOfThisCut) return;
    for (const [{ name }, { noticed }] of alive)
      if (noticed < this.epoch)
        yield `I39 process ${name} has not detected that history went back, although another has`;
  }

  /** A run that existed before history went back. */
  noteNumber({ run, id, generation }: RunRecord): void {
    this.#numbers.set(`${run} ${id} ${generation}`, run);
  }

  /** rules.I38. No two runs ever had the same number. */
  *givenTwice(all: Iterable<RunRecord>): Iterable<string> {
    for (const record of all) this.noteNumber(record);
    const byNumber = Map.groupBy(this.#numbers.keys(), (run) => this.#numbers.get(run));
    for (const [run, those] of byNumber)
      if (those.length > 1)
        yield `I38 number ${run} was given to ${those.map((each) => each.split(" ")[1]).join(" and ")}`;
  }

  get stale(): readonly string[] {
    return this.#stale;
  }

  /** rules.I14, rules.I15. An acknowledged entry is in the journal as written: neither lost nor replaced. */
  *missingIn(journals: ReadonlyMap<number, readonly Entry[]>): Iterable<string> {
    for (const { process, run, entry } of this.#entries) {
      const stored = journals.get(run)?.[entry.seq - 1];
      if (!isThere(journals.get(run), entry))
        yield `I14 run ${run}: entry ${entry.seq} ${entry.type} ${entry.command} was acknowledged to ${process}; the journal has ${stored === undefined ? "nothing" : `${stored.type} ${stored.command}`} there`;
    }
  }
}

function isThere(journal: readonly Entry[] | undefined, entry: Entry): boolean {
  const stored = journal?.[entry.seq - 1];
  return (
    stored !== undefined &&
    stored.seq === entry.seq &&
    stored.type === entry.type &&
    stored.command === entry.command &&
    stored.data === entry.data
  );
}

/** The messages that were delivered. */
export class Outside {
  readonly #byKey = new Map<string, Set<string>>();
  calls = 0;

  readonly deliver = (payload: unknown, dedupKey: string): void => {
    this.calls += 1;
    const said = this.#byKey.get(dedupKey) ?? new Set();
    this.#byKey.set(dedupKey, said.add(JSON.stringify(payload)));
  };

  /** rules.I20, rules.I21. A receiver that keeps one message per key has every sent message once, and nothing else. */
  *problems(journals: Iterable<readonly Entry[]>, wasRolledBack: boolean): Iterable<string> {
    const sent: string[] = [];
    for (const journal of journals)
      for (const { type, data } of journal)
        if (type === "MessageSent") sent.push(JSON.stringify((decode(data) as { payload: unknown }).payload));
    if (wasRolledBack) return yield* this.#problemsAfterLoss(sent);
    const received: string[] = [];
    for (const [key, said] of this.#byKey) {
      received.push([...said][0]!);
      if (said.size > 1) yield `I21 key ${key} stands for ${[...said].join(" and ")}`;
    }
    const [want, got] = [sent.toSorted().join(), received.toSorted().join()];
    if (want !== got) yield `I21 sent ${want}, received ${got}`;
  }

  /** Messages delivered by a lost history cannot be taken back, and the repeated run may send something else. */
  *#problemsAfterLoss(sent: readonly string[]): Iterable<string> {
    const received = new Set([...this.#byKey.values()].flatMap((said) => [...said]));
    for (const payload of sent) if (!received.has(payload)) yield `I20 sent ${payload}, which was not received`;
    for (const [key, said] of this.#byKey) {
      const senders = new Set([...said].map(senderOf));
      if (senders.size > 1) yield `I21 key ${key} stands for ${[...said].join(" and ")}`;
    }
  }
}

/** The run named in a payload, if any. */
function senderOf(payload: string): string | undefined {
  return /^"([a-z-]+-\d+) /.exec(payload)?.[1];
}

/** All runs of the store with their journals. */
export async function readAll(store: Store): Promise<Map<RunRecord, readonly Entry[]>> {
  const all = new Map<RunRecord, readonly Entry[]>();
  for (let before: number | undefined; ;) {
    const page = await store.listRuns({ limit: 100, ...(before !== undefined && { before }) });
    for (const record of page) all.set(record, await store.readJournal(record.run, 0));
    if (page.length < 100) return all;
    before = page.at(-1)!.run;
  }
}

/** The newest generation of each run. */
export function endsOf(all: ReadonlyMap<RunRecord, readonly Entry[]>): Map<string, RunEnd> {
  const ends = new Map<string, RunEnd>();
  for (const [record, journal] of all) {
    const other = ends.get(record.id);
    if (other !== undefined && other.record.generation > record.generation) continue;
    const last = journal.at(-1);
    const output = last?.type === "RunCompleted" ? (decode(last.data) as { output?: unknown }).output : undefined;
    const error = last?.type === "RunFailed" ? last.data.slice(0, 300) : (record.evidence ?? last?.type);
    ends.set(record.id, { record, journal, output, error });
  }
  return ends;
}

/** Runs that no client started. */
export function* strangers(all: ReadonlyMap<RunRecord, unknown>, asked: ReadonlySet<string>): Iterable<string> {
  for (const { id, parent, generation } of all.keys())
    if (parent === undefined && generation === 0 && !asked.has(id))
      yield `I1 run ${id} exists, but no client started it`;
}

/** What holds for every journal: one end, one terminal entry per command, dense sequence numbers. */
export function* journalProblems(all: ReadonlyMap<RunRecord, readonly Entry[]>): Iterable<string> {
  for (const [{ id, status, head }, journal] of all) {
    if (!hasEnded(status)) yield `I16 run ${id} has not ended: ${status}`;
    if (journal.length !== head || journal.some(({ seq }, index) => seq !== index + 1))
      yield `I7 run ${id}: journal has gaps`;
    const settled = new Map<string, string>();
    for (const { type, command, seq } of journal) {
      // After a retry, failed commands run again.
      if (type === "RunRetried") for (const [each, as] of settled) if (as.endsWith("Failed")) settled.delete(each);
      // A value that arrived early belongs to a port, not to a command.
      if (!isTerminal(type) || type === "SignalReceived" || command === "") continue;
      if (settled.has(command)) yield `I13 run ${id}: ${command} is settled again by entry ${seq} ${type}`;
      settled.set(command, type);
    }
  }
}
