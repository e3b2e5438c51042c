// Runtimes: the processes that moved a run, as the run's row keeps them.
//
// runtimes.M1. The column has one text per line, in the order of the first commits. The first line is the process that started the
//   run. A row that an earlier version wrote has this line alone.
// runtimes.M2. A commit of a turn, or of a flow's node, adds the text of its process if the row lacks it. The holder knows the row,
//   so a commit names its process only then, and other commits cost nothing.
// runtimes.M3. A row has at most 16 lines; later processes are not added. The texts are in no hash.

import { invariant } from "../base/index.ts";

/** A process that moved a run: its code, and the versions that can change what code computes. */
export interface Runtime {
  /** The processor, as `process.arch` names it; absent where an earlier version wrote the row. */
  readonly arch?: string;
  /** The name and version of this package: `reprise/0.2.0`; absent where an earlier version wrote the row. */
  readonly engine?: string;
  /** The option `code` of its engine: a commit or the digest of an image. */
  readonly code?: string;
  readonly node?: string;
  readonly v8?: string;
  readonly icu?: string;
  /** The version of the time zone data. */
  readonly tz?: string;
}

export const MAX_RUNTIMES = 16;

/** runtimes.M2. Whether a commit of this process has to bring its text. */
export function lacksRuntime(column: string, text: string): boolean {
  // Most rows have one line: that of this process.
  if (column === text) return false;
  const lines = linesOf(column);
  return lines.length < MAX_RUNTIMES && !lines.includes(text);
}

/** runtimes.M1, runtimes.M3. The column with this text; undefined: it stays as it is. */
export function withRuntime(column: string, text: string): string | undefined {
  invariant(!text.includes("\n"), "the text of a runtime is one line");
  if (!lacksRuntime(column, text)) return undefined;
  return column === "" ? text : `${column}\n${text}`;
}

/** The runtimes of a row, in the order of their first commits. */
export function runtimesOf({ runtime }: { readonly runtime: string }): readonly Runtime[] {
  return linesOf(runtime).flatMap((line) => {
    try {
      const parsed: unknown = JSON.parse(line);
      return typeof parsed === "object" && parsed !== null ? [parsed as Runtime] : [];
    } catch {
      // The text of another program that uses the store: it says nothing about versions.
      return [];
    }
  });
}

function linesOf(column: string): readonly string[] {
  return column === "" ? [] : column.split("\n");
}
