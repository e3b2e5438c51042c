// Find statement: which statement of a log a journal belongs to. Journals are filed under their roots, and name their runs.

import { parseBundleLine } from "../../receipts/index.ts";
import type { Content } from "../log/content.ts";
import { statementFacts, type StatementFacts } from "../sync/publish.ts";
import type { ServeHome } from "./serve-home.ts";

const NEWLINE = 10;

/** What the statement of the log says that names the journal with this root; undefined: there is none. */
export function findStatement(home: ServeHome, origin: string, root: string): StatementFacts | undefined {
  const content = findStatementOf(home, origin, root, home.journal(root));
  return content && statementFacts(content);
}

/** The statement itself, of a journal that the home need not have. */
export function findStatementOf(
  home: ServeHome,
  origin: string,
  root: string,
  journal: Uint8Array | undefined,
): Content | undefined {
  const run = journal && runOf(journal);
  if (run === undefined) return undefined;
  for (const key of home.statements(run.id, run.generation)) {
    const content = home.content(key);
    const facts = content && statementFacts(content);
    if (content !== undefined && facts?.journal.root === root && home.names(origin, content)) return content;
  }
  return undefined;
}

/** The run that the first line of a journal names. */
function runOf(journal: Uint8Array): { readonly id: string; readonly generation: number } | undefined {
  const end = journal.indexOf(NEWLINE);
  try {
    const parsed = parseBundleLine(Buffer.from(journal.subarray(0, Math.max(end, 0))).toString("utf8"), 1);
    return parsed.line === "header" ? parsed.header.run : undefined;
  } catch {
    return undefined;
  }
}
