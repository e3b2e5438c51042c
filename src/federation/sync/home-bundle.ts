// Home bundle: the bundle of a run made of the contents of a home, where its store is not at hand.
//
// home-bundle.B1. The lines are those that the home site would write, but for the envelope: only that site can sign it. Its records in the
//   log, with their proofs and signed checkpoints, vouch for it instead.
// home-bundle.B2. Without the data of entries the form is `hash-only`, or `blind` if the statement is.

import { RepriseError } from "../../base/index.ts";
import { artifactLine, envelopeText, headerLine } from "../../receipts/index.ts";
import type { FoundRun } from "../home/runs.ts";
import type { Home } from "../home/home.ts";
import type { Content } from "../log/content.ts";
import { checkJournalFile } from "./journal-file.ts";
import { logLines } from "./log-proof.ts";
import { statementFacts } from "./publish.ts";
import { predicateOf } from "./pull-contents.ts";

/** The lines of the bundle of one generation of a run. Refuses a run of which something is missing here. */
export function* homeBundle(home: Home, { origin, run, record, statement }: FoundRun): Generator<string> {
  const text = statement === undefined ? undefined : home.content(statement);
  const facts = text && statementFacts(text);
  if (text === undefined || facts === undefined) throw missing(home, run, "its statement", statement);
  const [claim, runRecord] = [home.content(facts.claim), home.content(record)];
  const journal = home.journal(facts.journal.root);
  if (claim === undefined) throw missing(home, run, "its claim", facts.claim);
  if (runRecord === undefined) throw missing(home, run, "its run record", record);
  if (journal === undefined) throw missing(home, run, "its journal", facts.journal.root);
  const { header, form } = checkJournalFile(journal, predicateOf(text));
  yield headerLine(form, header.run);
  yield envelopeText(textOf(text), undefined);
  yield artifactLine(claim.key, claim.type, textOf(claim));
  yield artifactLine(runRecord.key, runRecord.type, textOf(runRecord));
  const [, ...lines] = Buffer.from(journal).toString("utf8").trimEnd().split("\n");
  yield* lines;
  yield* logLines(home, origin, [record, text.key]);
}

function textOf({ bytes }: Content): string {
  return Buffer.from(bytes).toString("utf8");
}

function missing(home: Home, run: string, what: string, key: string | undefined): RepriseError {
  const isErased = key !== undefined && home.contentState(key) === "erased";
  if (isErased)
    return new RepriseError("NOT_PUBLISHED", `Run ${run} cannot be shown: ${what} was erased for good.`, {
      details: { run },
    });
  return new RepriseError(
    "NOT_PUBLISHED",
    `Run ${run} is not complete here: ${what} is missing. Fetch it with \`reprise pull <peer> ${run}\`, or ask its site to publish it.`,
    { details: { run } },
  );
}
