// Check journal: checks one run's journal entry by entry, and collects the commands that are still open.

import {
  decodeData,
  CHAIN_START,
  chainAfter,
  commandTypeOf,
  END_ENTRIES,
  isCancel,
  faultOf,
  isTerminal,
  markOf,
  retryRecordOf,
  VoidEntries,
  type CommandType,
  type Entry,
  type EntryType,
  type RetryRecord,
  type RunRetriedData,
} from "../../kernel/index.ts";

/** The entry that opens a command, by type. An operation has no entry until it ends; a state never ends. */
const OPENINGS: ReadonlyMap<string, EntryType> = new Map<CommandType | "Update", EntryType>([
  ["Task", "TaskScheduled"],
  ["ChildWorkflow", "ChildWorkflowInitiated"],
  ["Timer", "TimerStarted"],
  ["Promise", "PromiseCreated"],
  ["Settle", "SettleRequested"],
  ["Update", "UpdateRequested"],
]);
const OPENS: ReadonlySet<EntryType> = new Set(OPENINGS.values());

export interface Fault {
  readonly invariant: string;
  readonly seq: number | undefined;
  readonly message: string;
}

export class JournalCheck {
  readonly faults: Fault[] = [];
  /** Commands that were opened and have no terminal entry yet. */
  readonly open: Set<string> = new Set();
  readonly settled: Set<string> = new Set();
  /** The code may wait only for updates, which have no entry before they arrive. */
  takesUpdates = false;
  /** The first entry. */
  started: Entry | undefined;
  /** The ids of the promises that commands wait for, and those that are settled. */
  readonly #promises: Map<string, string> = new Map();
  readonly #settledPromises: Set<string> = new Set();
  readonly #cancelled: Set<string> = new Set();
  /** Commands created inside a shield. */
  readonly #shielded: Set<string> = new Set();
  /** The chain after the last entry. */
  get chain(): string {
    return this.#chain;
  }
  #chain = CHAIN_START;
  #seq = 0;
  #chainBroken = false;
  readonly #ends: Entry[] = [];

  /** The retries in the journal. A second check over the journal knows which entries they make void. */
  readonly retries: RetryRecord[] = [];
  readonly #voids: VoidEntries | undefined;

  constructor(retries: readonly RetryRecord[] = []) {
    this.#voids = retries.length === 0 ? undefined : new VoidEntries(retries);
  }

  see(entry: Entry): void {
    this.#checkPlace(entry);
    if (entry.seq === 1) {
      this.started = entry;
      this.takesUpdates = takesUpdatesIn(entry.data);
    }
    if (entry.type === "RunRetried")
      this.retries.push(retryRecordOf(entry.seq, fieldsOf(entry.data) as unknown as RunRetriedData));
    const verdict = this.#voids?.classify(entry, () => fieldsOf(entry.data));
    if (verdict === "void") return this.#forget(entry);
    this.#checkCommand(verdict === "orphan" ? { ...entry, command: "" } : entry);
    if (END_ENTRIES.includes(entry.type)) this.#ends.push(entry);
  }

  #checkPlace(entry: Entry): void {
    const { seq, type, command, data, mark } = entry;
    if (seq !== this.#seq + 1)
      this.#fault("I7 journal gap-free", this.#seq + 1, `Entry ${this.#seq + 1} is missing; the next one is ${seq}.`);
    this.#seq = seq;
    if (seq === 1 && type !== "RunStarted")
      this.#fault("I7 journal gap-free", 1, `The first entry is ${type}, not RunStarted.`);
    this.#chain = chainAfter(this.#chain, type, command, data);
    // After a damaged entry every mark differs; only the first one is reported.
    if (this.#chainBroken || markOf(this.#chain) === mark) return;
    this.#chainBroken = true;
    const { code, problem } = faultOf(entry);
    this.#fault(
      "I8 journal hash chain",
      seq,
      code === undefined
        ? `Entry ${seq} (${type}) was changed after it was written: its mark does not match.`
        : `${code}: ${problem}.`,
    );
  }

  #checkCommand({ seq, type, command, data }: Entry): void {
    if (OPENS.has(type)) {
      if (this.open.has(command) || this.settled.has(command))
        this.#fault("I10 completions follow commands", seq, `${command} is opened a second time.`);
      this.open.add(command);
      if (isShielded(data)) this.#shielded.add(command);
      if (type === "PromiseCreated") this.#openPromise(command, data);
      return;
    }
    if (type === "PromiseResolved" || type === "PromiseRejected")
      this.#settledPromises.add(String(fieldsOf(data)["promiseId"]));
    // A cancel closes every open command that is not shielded.
    if (isCancel(type))
      for (const opened of this.open) {
        if (this.#shielded.has(opened)) continue;
        this.#cancelled.add(opened);
        this.open.delete(opened);
      }
    // The end of a node's attempt closes the commands that the attempt left open.
    if (type === "NodeCompleted" || type === "NodeFailed" || type === "NodeRetried")
      for (const opened of this.open) if (isCommandOf(opened, command)) this.open.delete(opened);
    if (!isTerminal(type) || command === "") return;
    if (this.settled.has(command))
      this.#fault("I10 completions follow commands", seq, `${command} has a second terminal entry, ${type}.`);
    const opening = OPENINGS.get(commandTypeOf(command));
    const wasOpen = this.open.delete(command) || this.#cancelled.has(command) || this.settled.has(command);
    if (opening !== undefined && !wasOpen)
      this.#fault("I10 completions follow commands", seq, `${command} ends with ${type} before ${opening}.`);
    this.settled.add(command);
  }

  #openPromise(command: string, data: string): void {
    const { promiseId, receives } = fieldsOf(data);
    if (typeof promiseId === "string" && receives === undefined) this.#promises.set(command, promiseId);
  }

  /** open-promise.P1. The commands of the promises that are open, with their ids. */
  openPromises(): ReadonlyMap<string, string> {
    const open = [...this.#promises].filter(
      ([command, id]) => this.open.has(command) && !this.#settledPromises.has(id),
    );
    return new Map(open);
  }

  /** retry-record.V2. The code may create a void command again. */
  #forget({ type, command }: Entry): void {
    if (!OPENS.has(type)) return;
    this.open.delete(command);
    this.settled.delete(command);
  }

  finish(run: { readonly head: number; readonly chain: string; readonly status: string }): void {
    if (this.#seq !== run.head)
      this.#fault(
        "I7 journal gap-free",
        this.#seq + 1,
        `The run's row counts ${run.head} entries; the journal has ${this.#seq}.`,
      );
    else if (!this.#chainBroken && this.#chain !== run.chain)
      this.#fault(
        "I8 journal hash chain",
        this.#seq,
        "The chain in the run's row is not the chain after its last entry.",
      );
    this.#checkEnd(run.status);
  }

  #checkEnd(status: string): void {
    const expected = END_OF[status];
    const last = this.#ends.at(-1);
    if (this.#ends.length > (expected === undefined ? 0 : 1))
      this.#fault("I18 one end", last?.seq, `The run is ${status} and has ${this.#ends.length} end entries.`);
    else if (expected !== undefined && (last?.type !== expected || last.seq !== this.#seq))
      this.#fault("I18 one end", last?.seq, `The run is ${status}, but its last entry is not ${expected}.`);
  }

  #fault(invariant: string, seq: number | undefined, message: string): void {
    this.faults.push({ invariant, seq, message });
  }
}

/** Whether the code of a node created the command, in any attempt. */
function isCommandOf(opened: string, node: string): boolean {
  return opened.startsWith(node) && (opened[node.length] === "#" || opened[node.length] === "~");
}

function fieldsOf(data: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(data) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Searches the text before it parses it: few entries are shielded. */
function isShielded(data: string): boolean {
  if (!data.includes('"shielded":true')) return false;
  try {
    return (JSON.parse(data) as { shielded?: unknown }).shielded === true;
  } catch {
    return false;
  }
}

const END_OF: Readonly<Record<string, EntryType>> = {
  completed: "RunCompleted",
  failed: "RunFailed",
  cancelled: "RunCancelled",
  continued: "RunContinued",
};

function takesUpdatesIn(started: string): boolean {
  try {
    return decodeData("RunStarted", started).updates === true;
  } catch {
    // The check of the hash chain reports the damaged entry.
    return false;
  }
}
