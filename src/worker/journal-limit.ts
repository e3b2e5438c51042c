// Journal limit: a run whose journal has grown beyond all bounds is stopped while it can still be brought back.
//
// What arrives is always taken in: a completion must not be lost. What is refused is what the code asks for next.

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
  warnOfLength(run: string, entries: number): void;
}

type Log = (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;

export function journalLimit(given: number | undefined, log: Log): JournalLimitHost {
  const entryLimit = given ?? ENTRY_LIMIT;
  return {
    entryLimit,
    longAt: Math.min(entryLimit, ENTRIES_TO_WARN),
    warnOfLength: (run, entries) =>
      log("warn", `The journal has ${entries} entries. Let a run this long go on with ctx.continueAsNew().`, {
        run,
        entries,
      }),
  };
}

/** To be asked with what the code asks for still untaken; true when the run was stopped for it. */
export function isTooLong(host: JournalLimitHost, execution: Execution, entries: number): boolean {
  if (execution.outcome !== undefined || entries + execution.asks.length <= host.entryLimit) return false;
  void execution.halt(tooLong(execution, entries, host.entryLimit));
  return true;
}

/** Once, by whoever has it in memory when it gets that long. */
export function warnIfLong(host: JournalLimitHost, draft: Draft): void {
  const { head, lookedAt, record } = draft;
  draft.lookedAt = head;
  if (lookedAt < ENTRIES_TO_WARN && head >= ENTRIES_TO_WARN) host.warnOfLength(record.id, head);
}

function tooLong({ body, commands }: Execution, entries: number, limit: number): Stop {
  return {
    status: "blocked",
    code: "JOURNAL_TOO_LONG",
    where: commands.last === undefined ? "before its first command" : `at ${commands.last}`,
    seq: entries,
    message: `The journal of workflow ${body.name} has ${entries} entries and may have ${limit}. Let it go on with ctx.continueAsNew(), or raise \`limits.entries\` of createEngine, then resume the run`,
    expected: limit,
    actual: entries,
  };
}
