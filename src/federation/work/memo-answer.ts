// Memo answer: the result of a pure step, as a site tells others: T(memo-answer) of {definition, memo, nonce, origin, run, runtime, tags,
// v, value?}.
//
// memo-answer.N1. A nonce, derived from the key of the site, is part of it: the key in the log says nothing about input or result, also
//   to who can guess both. The same row of the memo gives the same bytes every time.
// memo-answer.N2. The value is the text of the result. An answer whose text is not canonical, or cannot be decoded, is none.
// memo-answer.N3. An answer counts for the origin that it names, and only where a record of the log of that origin put it.

import { canonicalJson, decode, encode } from "../../base/index.ts";
import { readMemoText, type MemoGroup, type RunRecord, type Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import { MEMO_ANSWER_TYPE } from "../home/facts.ts";
import { contentOf, type Content } from "../log/content.ts";
import { firstEpoch, type Origin } from "../log/origin.ts";

export interface MemoAnswer {
  readonly memo: string;
  /** The text of the result; absent: the step returned undefined. */
  readonly value?: string;
  readonly origin: Origin;
  /** The run that executed the step, and its program. */
  readonly run: string;
  readonly definition: string;
  readonly tags: readonly string[];
  /** The process that executed the step. */
  readonly runtime: string;
  readonly nonce: string;
  readonly v: 1;
}

/** What names the answers to a memo in the home. */
export function memoEnd(memo: string): string {
  return `memo:${memo}`;
}

const PAGE = 1_000;
const NONCE_BYTES = 16;

/** The answers that a run gives: the results of the pure steps that it executed. */
export async function memoAnswersOf(store: Store, record: RunRecord, key: SigningKey): Promise<readonly Content[]> {
  // memo.M5. Keys of a store with a codec are made under a secret, and mean nothing elsewhere.
  if ((await store.openMemoKeys()).status !== "plain") return [];
  const { groups } = await store.listMemos({ run: record.run, limit: PAGE });
  return groups.flatMap((group) => answersOf(group, record, key));
}

function answersOf({ memo, rows }: MemoGroup, { run, id, definition, tags }: RunRecord, key: SigningKey): Content[] {
  return rows.flatMap((row) => {
    const read = row.run === run ? readMemoText(row.value) : undefined;
    if (read === undefined) return [];
    const answer: MemoAnswer = {
      memo,
      ...(read.result !== undefined && { value: read.result }),
      origin: firstEpoch(key.origin),
      run: id,
      definition,
      tags,
      runtime: row.by,
      nonce: key.derive(`memo-answer/${run}/${row.seq}/${memo}`, NONCE_BYTES).toString("hex"),
      v: 1,
    };
    return [contentOf(MEMO_ANSWER_TYPE, canonicalJson(answer))];
  });
}

/** memo-answer.N2. Undefined: it is no answer. */
export function readMemoAnswer({ type, bytes }: Pick<Content, "type" | "bytes">): MemoAnswer | undefined {
  if (type !== MEMO_ANSWER_TYPE) return undefined;
  const text = Buffer.from(bytes).toString("utf8");
  try {
    const answer: unknown = JSON.parse(text);
    if (!isMemoAnswer(answer) || canonicalJson(answer) !== text) return undefined;
    return answer.value === undefined || encode(decode(answer.value)) === answer.value ? answer : undefined;
  } catch {
    return undefined;
  }
}

function isMemoAnswer(value: unknown): value is MemoAnswer {
  if (typeof value !== "object" || value === null) return false;
  const fields = value as Readonly<Record<string, unknown>>;
  return (
    ["memo", "origin", "run", "definition", "runtime", "nonce"].every((name) => typeof fields[name] === "string") &&
    (fields["value"] === undefined || typeof fields["value"] === "string") &&
    Array.isArray(fields["tags"]) &&
    fields["tags"].every((tag) => typeof tag === "string") &&
    fields["v"] === 1
  );
}
