// Step reading: one reading of a journal, entry by entry. Decides which entries count, and passes those on.

import { RepriseError } from "../base/index.ts";
import {
  decodeData,
  retryRecordOf,
  VoidEntries,
  type DefinitionKind,
  type EntryType,
  type RetryRecord,
} from "../kernel/index.ts";
import type { KeyOf } from "./blind.ts";
import { FactsReader } from "./claim-facts.ts";
import type { PlainEntry } from "./journal-tree.ts";
import { memberTexts } from "./member-texts.ts";
import { FlowSteps } from "./steps-flow.ts";
import { GraphSteps } from "./steps-graph.ts";
import { WorkflowSteps } from "./steps-workflow.ts";
import { MemberKeys, type EmitStep, type StepReader } from "./steps.ts";

export class StepReading {
  readonly facts: FactsReader;
  readonly #kind: DefinitionKind;
  readonly #reader: StepReader;
  readonly #expected: readonly RetryRecord[];
  readonly #verdictOf: (entry: PlainEntry) => Verdict;
  /** The retries of the run that this reading has found. */
  readonly retries: RetryRecord[] = [];

  /** `retries`: those that an earlier reading has found. */
  constructor(kind: DefinitionKind, keyOf: KeyOf, emit: EmitStep, retries: readonly RetryRecord[] = []) {
    const keys = new MemberKeys(keyOf);
    this.#kind = kind;
    this.#reader = newReader(kind, keys, emit);
    this.#expected = retries;
    this.#verdictOf = counterOf(kind, retries);
    this.facts = new FactsReader(keys);
  }

  add(entry: PlainEntry): void {
    const { type, seq, data } = entry;
    if (type === "RunRetried") this.retries.push(retryIn(entry));
    if (type === "RunRetried" || this.retries.length > this.#expected.length) return;
    const verdict = this.#verdictOf(entry);
    if (verdict === "void") return;
    const members = memberTexts(data);
    const isKnown = this.facts.add(entry, members) || WITHOUT_RECORD.has(type);
    if (!this.#reader.add(verdict === "orphan" ? { ...entry, command: "" } : entry, members) && !isKnown)
      throw new RepriseError(
        "STORE_CORRUPT",
        `Entry ${seq} of a ${this.#kind} has the type ${type}, which this version does not know. Use the version that wrote it.`,
      );
  }

  /** False: the run was retried, and another reading needs these retries (claim.C4). */
  finish(): boolean {
    if (this.retries.length !== this.#expected.length) return false;
    this.#reader.finish();
    return true;
  }

  ranks(): readonly number[] | undefined {
    return this.#reader.ranks?.();
  }
}

/** Entries that change no record. */
const WITHOUT_RECORD: ReadonlySet<EntryType> = new Set([
  "OperationRetried",
  "InputChanged",
  "RunMigrated",
  "BudgetRaised",
  "BudgetDeclined",
]);

function retryIn({ seq, data }: PlainEntry): RetryRecord {
  const retry = retryRecordOf(seq, decodeData("RunRetried", data));
  const { from, commands, kept, reopened } = retry;
  const isValid =
    typeof from === "number" &&
    typeof commands === "number" &&
    Array.isArray(reopened) &&
    Array.isArray(kept) &&
    kept.every((range) => Array.isArray(range));
  if (isValid) return retry;
  throw new RepriseError(
    "STORE_CORRUPT",
    `Entry ${seq} (RunRetried) does not say what it voids. Run \`reprise doctor\`.`,
  );
}

function newReader(kind: DefinitionKind, keys: MemberKeys, emit: EmitStep): StepReader {
  switch (kind) {
    case "workflow":
      return new WorkflowSteps(keys, emit);
    case "graph":
      return new GraphSteps(keys, emit);
    case "flow":
      return new FlowSteps(keys, emit);
  }
}

type Verdict = ReturnType<VoidEntries["classify"]>;

/** claim.C1 */
function counterOf(kind: DefinitionKind, retries: readonly RetryRecord[]): (entry: PlainEntry) => Verdict {
  if (retries.length === 0) return () => "counts";
  if (kind === "flow")
    return ({ seq }) => (retries.some((retry) => seq >= retry.from && seq < retry.seq) ? "void" : "counts");
  const voids = new VoidEntries(retries);
  return (entry) => voids.classify(entry, () => decodeData(entry.type, entry.data));
}
