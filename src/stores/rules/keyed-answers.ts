// Keyed answers: the rules of idempotency keys (kernel/keyed-answer.ts).

import { KEYED_ANSWER_MS, type KeyedRequest, type KeyReservation } from "../../kernel/index.ts";
import type { RowSession } from "../rows/rows.ts";

const ROW = ["body", "at", "held_until", "status", "answer"] as const;
const KEY = ["request"] as const;

const RESERVING = "Reserving an idempotency key";
const RECORDING = "Recording the answer of an idempotency key";
const DELETING = "Deleting old answers";
/** Rows per transaction. */
const PAGE = 500;

/** keyed-answer.K2 */
export function reserveKey(
  session: RowSession,
  { request, body }: KeyedRequest,
  holdMs: number,
): Promise<KeyReservation> {
  return session.transact(RESERVING, ({ rows, now }): KeyReservation => {
    const row = rows.get("keyed_answers", [request], ROW);
    const fresh = { request, body, at: now, held_until: now + holdMs, status: null, answer: null };
    if (row === undefined && rows.add("keyed_answers", fresh)) return { status: "reserved" };
    // Another transaction was first; it holds the key from now on.
    if (row === undefined) return { status: "held", heldUntil: now + holdMs };
    // keyed-answer.K3
    if (row.at <= now - KEYED_ANSWER_MS) {
      const { request: _key, ...values } = fresh;
      rows.set("keyed_answers", [request], values);
      return { status: "reserved" };
    }
    if (row.body !== body) return { status: "other_body" };
    if (row.status !== null) return { status: "answered", code: row.status, answer: row.answer ?? "null" };
    if (row.held_until > now) return { status: "held", heldUntil: row.held_until };
    rows.set("keyed_answers", [request], { held_until: now + holdMs });
    return { status: "reserved" };
  });
}

export async function recordAnswer(
  session: RowSession,
  { request, body }: KeyedRequest,
  code: number,
  answer: string,
): Promise<void> {
  await session.transact(RECORDING, ({ rows }) => {
    const row = rows.get("keyed_answers", [request], ROW);
    if (row?.body === body && row.status === null) rows.set("keyed_answers", [request], { status: code, answer });
  });
}

/** `forget`: the request was refused and did nothing, so its key is free. Otherwise only the same request may repeat it, at once. */
export async function releaseKey(session: RowSession, { request, body }: KeyedRequest, forget: boolean): Promise<void> {
  await session.transact(RECORDING, ({ rows }) => {
    const row = rows.get("keyed_answers", [request], ROW);
    if (row?.body !== body || row.status !== null) return;
    if (forget) rows.drop("keyed_answers", [request]);
    else rows.set("keyed_answers", [request], { held_until: 0 });
  });
}

/** keyed-answer.K3. Returns how many. */
export async function deleteOldAnswers(session: RowSession): Promise<number> {
  let count = 0;
  for (;;) {
    const deleted = await session.transact(DELETING, ({ rows, now }) => {
      const old = rows.select("keyed_answers_by_age", [], KEY, { upTo: now - KEYED_ANSWER_MS, limit: PAGE });
      for (const { request } of old) rows.drop("keyed_answers", [request]);
      return old.length;
    });
    count += deleted;
    if (deleted < PAGE) return count;
  }
}
