// Journal limit: stops a run while its journal is still short enough to be replayed.
//
// The run always accepts arrivals, so that no completion is lost; it refuses the next command of the code. The limit counts the
// entries that a replay reads: all entries of a workflow, and for a graph those since its last full checkpoint.

import type { RunRecord } from "../kernel/index.ts";
import type { LogLine } from "../process/index.ts";
import type { Execution, Stop } from "../workflow/index.ts";
import type { JournalWriter } from "./journal-writer.ts";

/** A million entries replay in seconds and take some hundred megabytes of memory meanwhile. */
const ENTRY_LIMIT = 1_000_000;
/** From here on the worker logs a warning. */
const WARN_ENTRIES = 50_000;

export class JournalLimit {
  readonly entries: number;
  /** Journals shorter than this are not checked. */
  readonly checkFrom: number;
  readonly #log: LogLine;

  constructor(entries: number | undefined, log: LogLine) {
    this.entries = entries ?? ENTRY_LIMIT;
    this.checkFrom = Math.min(this.entries, WARN_ENTRIES);
    this.#log = log;
  }

  /** Called before the requests of the code are journaled; true when it stopped the run. */
  refuses(execution: Execution, { head, replayLength: length }: JournalWriter): boolean {
    if (execution.outcome !== undefined || length + execution.requests.length <= this.entries) return false;
    void execution.halt(tooLong(execution, head, length, this.entries));
    return true;
  }

  /** Warns once per run and worker. */
  warnIfLong(journal: JournalWriter): void {
    const { replayLength: length, checkedAt: lookedAt, record } = journal;
    journal.checkedAt = length;
    if (lookedAt < WARN_ENTRIES && length >= WARN_ENTRIES) this.#warn(record, length);
  }

  #warn({ id, kind }: RunRecord, entries: number): void {
    const message =
      kind === "graph"
        ? `Graph run ${id} has written ${entries} entries since its last full checkpoint, so each replay takes longer. Send fewer items per step, or start child graphs from its nodes.`
        : `The journal of run ${id} has ${entries} entries, so each replay takes longer. Continue long runs with ctx.continueAsNew().`;
    this.#log("warn", message, { run: id, entries });
  }
}

function tooLong({ body: { kind, name }, commands }: Execution, head: number, entries: number, limit: number): Stop {
  const message =
    kind === "graph"
      ? `Graph ${name} has written ${entries} entries since its last full checkpoint; the limit is ${limit}. Send fewer items per step, start child graphs from its nodes, or raise \`limits.entries\` of createEngine.`
      : `The journal of workflow ${name} has ${entries} entries; the limit is ${limit}. Continue the run with ctx.continueAsNew(), or raise \`limits.entries\` of createEngine.`;
  return {
    status: "blocked",
    code: "JOURNAL_TOO_LONG",
    where: commands.last === undefined ? "before its first command" : `at ${commands.last}`,
    seq: head,
    message,
    expected: limit,
    actual: entries,
  };
}
