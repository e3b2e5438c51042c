// Fill contents: contents of records that the home already has, which come later: a rule was added, or an upload was repeated.
//
// fill-contents.C1. The home takes only what a visible record of the log names, and the claim and journal that such a statement names. So a
//   peer cannot fill the disk with contents that no record needs.

import { isErrorCode, RepriseError } from "../../base/index.ts";
import type { PutOutcome } from "../home/home.ts";
import type { Content } from "../log/content.ts";
import { checkJournalFile } from "../sync/journal-file.ts";
import { predicateOf } from "../sync/pull-contents.ts";
import { statementFacts } from "../sync/publish.ts";
import { findStatementOf } from "./find-statement.ts";
import type { ServeHome } from "./serve-home.ts";

/** fill-contents.C1. How many contents were new. */
export function fillContents(home: ServeHome, origin: string, contents: readonly Content[], from: string): number {
  const named = contents.filter((content) => home.names(origin, content));
  const claims = new Set(named.flatMap((content) => statementFacts(content)?.claim ?? []));
  const taken = contents.filter((content) => claims.has(content.key) || named.includes(content));
  const present = home.hasContents(taken.map(({ key }) => key));
  const missing = taken.filter(({ key }) => !present.has(key));
  return missing.length === 0 ? 0 : stored(home.putContents(missing, { from }));
}

/** fill-contents.C1. Whether a statement of the log names the journal, so that the home has it now. */
export function fillJournal(home: ServeHome, origin: string, root: string, lines: Uint8Array, from: string): boolean {
  const statement = findStatementOf(home, origin, root, lines);
  if (statement === undefined) return false;
  // journal-file.J3
  checkJournalFile(lines, predicateOf(statement));
  stored(home.putJournal(root, lines, { from }));
  return true;
}

function stored(outcome: PutOutcome): number {
  if (outcome.status === "stored") return outcome.stored;
  throw new RepriseError(isErrorCode(outcome.code) ? outcome.code : "CONTENT_DAMAGED", outcome.reason);
}
