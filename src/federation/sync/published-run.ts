// Published run: what a site gives away of one of its runs: statement, claim, run record and journal file.
//
// published-run.R1. It is made of the run as it is in the store, with the lines of a bundle: the same run gives the same bytes.
// published-run.R2. A store with a codec gives blind lines only (docs/decisions/0139).

import { ENGINE_NAME, mediaType, RepriseError } from "../../base/index.ts";
import type { RunRecord, Store } from "../../kernel/index.ts";
import { parseBundleLine, readRun, runRecordOf, saltOf, writeBundle, type SigningKey } from "../../receipts/index.ts";
import { STATEMENT_TYPE } from "../home/facts.ts";
import { contentOf, type Content } from "../log/content.ts";
import { journalFile } from "./journal-file.ts";

export interface PublishedContents {
  readonly statement: Content;
  readonly claim: Content;
  readonly runRecord: Content;
  readonly journal: { readonly root: string; readonly lines: Uint8Array };
}

export type PublishedForm = "full" | "blind";

/** published-run.R2 */
export async function publishedForm(store: Store): Promise<PublishedForm> {
  return (await store.info()).codecs.length > 0 ? "blind" : "full";
}

/** published-run.R1. `runKey`: the key of the run record in the log, which says whether the run was adopted. */
export async function publishedContents(
  store: Store,
  record: RunRecord,
  key: SigningKey,
  form: PublishedForm,
  runKey?: string,
): Promise<PublishedContents> {
  const source = await readRun(store, record);
  const salt = form === "blind" ? saltOf(source.salt, record, key) : undefined;
  const isAdopted = runRecordOf(record, { key, salt, isAdopted: true }).key === runKey;
  const lines: string[] = [];
  const artifacts: Content[] = [];
  let statement: string | undefined;
  let number = 0;
  for await (const line of writeBundle(source, { form, key, engine: ENGINE_NAME, isAdopted })) {
    number += 1;
    if (number > 4 || number === 1) lines.push(line);
    else {
      const parsed = parseBundleLine(line, number);
      if (parsed.line === "envelope") statement = Buffer.from(parsed.envelope.payload, "base64").toString("utf8");
      else if (parsed.line === "artifact") artifacts.push(contentOf(parsed.artifact.t, parsed.artifact.s));
    }
  }
  const claim = artifacts.find(({ type }) => type === mediaType("claim"));
  const runRecord = artifacts.find(({ type }) => type === mediaType("run"));
  if (statement === undefined || claim === undefined || runRecord === undefined)
    throw new RepriseError("INVARIANT", `The bundle of run ${record.id} has no statement, claim or run record.`);
  const { root } = (JSON.parse(statement) as { predicate: { journal: { root: string } } }).predicate.journal;
  return {
    statement: contentOf(STATEMENT_TYPE, statement),
    claim,
    runRecord,
    journal: { root, lines: journalFile(lines) },
  };
}
