// Journal limit: a run whose journal has grown beyond all bounds is stopped while it can still be brought back.
//
// What arrives is always taken in: a completion must not be lost. What is refused is what the code asks for next. Counted is
// what must be read to bring the run back: all of a workflow, of a graph what came since its state was kept whole.

import type { RunRecord } from "../kernel/index.ts";
import type { Execution, LogLevel, Stop } from "../workflow/index.ts";
import type { Draft } from "./draft.ts";

/** A journal of a million entries replays in seconds and takes some hundred megabytes while it does. */
const ENTRY_LIMIT = 1_000_000;
/** Long before that it is worth a word. */
const ENTRIES_TO_WARN = 50_000;

export interface JournalLimitHost {
  readonly entryLimit: number;
  /** From how many entries on the length of a journal is looked at. */
  readonly longAt: number;
  warnOfLength(run: Pick<RunRecord, "id" | "kind">, entries: number): void;
}

type Log = (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;

export function journalLimit(given: number | undefined, log: Log): JournalLimitHost {
  const entryLimit = given ?? ENTRY_LIMIT;
  return {
    entryLimit,
    longAt: Math.min(entryLimit, ENTRIES_TO_WARN),
    warnOfLength: ({ id, kind }, entries) => {
      const isGraph = kind === "graph";
      const message = isGraph
        ? `${entries} entries have been written since its state was kept whole. Spread fewer items at once, or let nodes start child graphs.`
        : `The journal has ${entries} entries. Let a run this long go on with ctx.continueAsNew().`;
      log("warn", message, { run: id, entries });
    },
  };
}

/** To be asked with what the code asks for still untaken; true when the run was stopped for it. */
export function isTooLong(host: JournalLimitHost, execution: Execution, { head, length }: Draft): boolean {
  if (execution.outcome !== undefined || length + execution.asks.length <= host.entryLimit) return false;
  void execution.halt(tooLong(execution, head, length, host.entryLimit));
  return true;
}

/** Once, by whoever has it in memory when it gets that long. */
export function warnIfLong(host: JournalLimitHost, draft: Draft): void {
  const { length, lookedAt, record } = draft;
  draft.lookedAt = length;
  if (lookedAt < ENTRIES_TO_WARN && length >= ENTRIES_TO_WARN) host.warnOfLength(record, length);
}

function tooLong({ body: { kind, name }, commands }: Execution, head: number, entries: number, limit: number): Stop {
  const message =
    kind === "graph"
      ? `Graph ${name} has written ${entries} entries since its state was kept whole, and may write ${limit}. Spread fewer items at once, let nodes start child graphs, or raise \`limits.entries\` of createEngine, then resume the run`
      : `The journal of workflow ${name} has ${entries} entries and may have ${limit}. Let it go on with ctx.continueAsNew(), or raise \`limits.entries\` of createEngine, then resume the run`;
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
