// Incoming: the checks of contents and journals that another site sent.

import { sha256Hex } from "../../base/index.ts";
import type { Content } from "../log/content.ts";
import { keyBlob } from "./blobs.ts";
import { isContentOfItsKey, type PutCount } from "./contents.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Batch } from "./ingest.ts";
import { checkJournal } from "./journals.ts";
import type { HomeLimits } from "./limits.ts";
import { indexRelations, relationsOf } from "./relations.ts";
import { Refusal } from "./refusal.ts";

export type IncomingContents = Pick<Batch, "contents" | "journals" | "from">;

export interface CheckedContents {
  /** How many were left out because they are erased. */
  readonly erased: number;
  /** The keys that are here after `put`. */
  readonly written: ReadonlySet<string>;
  /** Writes them into their shards. */
  put(): PutCount;
  /** Within a transaction of federation.db, after `put`. */
  index(): void;
}

/** Limits of a whole batch, and of each content. */
export function checkLimits({ records, contents, journals }: Batch, limits: HomeLimits): void {
  if (records.length > limits.batchRecords)
    throw tooMuch(`a batch of ${records.length} records`, "batchRecords", limits);
  checkContentLimits({ contents, journals }, limits);
  const recordBytes = records.reduce((sum, text) => sum + text.length, 0);
  const contentBytes = contents.reduce((sum, { bytes }) => sum + bytes.length, 0);
  if (recordBytes > limits.batchBytes) throw tooMuch(`records of ${recordBytes} bytes`, "batchBytes", limits);
  // A batch ends with the content that fills it, and that may be a large one.
  if (contentBytes > limits.batchBytes + limits.artifactBytes)
    throw tooMuch(`contents of ${contentBytes} bytes at once`, "batchBytes", limits);
}

export function checkContentLimits({ contents, journals }: IncomingContents, limits: HomeLimits): void {
  for (const { key, bytes } of contents)
    if (bytes.length > limits.artifactBytes)
      throw tooMuch(`the content ${key} of ${bytes.length} bytes`, "artifactBytes", limits);
  for (const { root, lines } of journals)
    if (lines.length > limits.journalBytes)
      throw tooMuch(`the journal ${root} of ${lines.length} bytes`, "journalBytes", limits);
}

function tooMuch(what: string, limit: keyof HomeLimits, limits: HomeLimits): Refusal {
  return new Refusal("LIMIT_EXCEEDED", `This site does not take ${what}: limits.${limit} is ${limits[limit]}.`);
}

/** Refuses what does not have its key, and keeps evidence of it. */
export function checkContents(incoming: IncomingContents, parts: HomeParts): CheckedContents {
  const { contents, journals, from } = incoming;
  const keys = [...contents.map(({ key }) => key), ...journals.map(({ root }) => root)];
  for (const content of contents) if (!isContentOfItsKey(content)) throw damaged(parts, content, from);
  const relations = contents.map(relationsOf);
  const checked = journals.map(({ root, lines }) => checkJournal(root, lines));
  const erased = parts.erasure.erasedOf(keys);
  const taken = erased.size === 0 ? contents : contents.filter(({ key }) => !erased.has(key));
  return {
    erased: erased.size,
    written: new Set(taken.map(({ key }) => key)),
    put: () => {
      const put = parts.contents.put(taken);
      const journals = parts.journals.putAll(checked.filter(({ root }) => !erased.has(root)));
      return { stored: put.stored + journals.stored, duplicates: put.duplicates + journals.duplicates };
    },
    index: () => {
      for (const [i, { key }] of contents.entries()) if (!erased.has(key)) indexRelations(parts.db, key, relations[i]!);
      const unwant = parts.db.sql("delete from wanted where key = ?");
      if (parts.db.get("select 1 from wanted limit 1") !== undefined)
        for (const { key } of taken) unwant.run(keyBlob(key));
      parts.conflicts.resolveContents(keys, from);
    },
  };
}

/** How much of damaged bytes is kept as evidence. */
const KEPT_BYTES = 4_096;

function damaged(parts: HomeParts, { key, type, bytes }: Content, peer: string | undefined): Refusal {
  const head = Buffer.from(bytes.subarray(0, KEPT_BYTES)).toString("base64");
  const evidence = { key, type, size: bytes.length, sum: sha256Hex(bytes), head };
  parts.conflicts.add({ kind: "content", cell: `a:${key}`, evidence, peer });
  return new Refusal(
    "CONTENT_DAMAGED",
    `The content ${key} has other bytes than its key says. Nothing of the batch is taken; \`reprise fed conflicts\` has the evidence.`,
  );
}
