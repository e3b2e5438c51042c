// Runs: lists, one run, what happens now, counts, the result, actions on many.

import { RepriseError } from "../../base/index.ts";
import type { runOperations } from "../../contract/index.ts";
import type { BulkAction } from "../../engine/index.ts";
import { jsonResponse } from "../../http/index.ts";
import { hasEnded, type RunRecord, type RunStatus } from "../../kernel/index.ts";
import { maySeeRun } from "../auth/scope.ts";
import type { Call, HandlersOf, ServerHost } from "../host.ts";
import { countRuns } from "../read/count-runs.ts";
import { readRunDetail } from "../read/run-detail.ts";
import { readRunNow } from "../read/run-now.ts";
import { cursorOf, DEFAULT_LIMIT, listPage, selectionOf, type RunPage } from "../read/run-selection.ts";
import { getRecord, summaryOf } from "../read/run-summary.ts";
import { accessOf, viewOf } from "../read/view.ts";
import { payloadToWire } from "../wire-payload.ts";

export const runHandlers: HandlersOf<typeof runOperations> = {
  async listRuns({ host, caller, query }) {
    const { limit = DEFAULT_LIMIT, after, ...given } = query;
    return pageBody(await listPage(host.store, caller, selectionOf(given), limit, cursorOf(after)));
  },
  async getRun(call) {
    const record = await getRecord(call, undefined, call.query?.generation);
    return readRunDetail(call.host, record, viewOf(call));
  },
  async listChildren(call) {
    const { host, caller, query } = call;
    const { limit = DEFAULT_LIMIT, after } = query ?? {};
    const { id } = await getRecord(call);
    return pageBody(await listPage(host.store, caller, { parent: id }, limit, cursorOf(after)));
  },
  getResult: (call) => readResult(call, Math.max((call.query?.wait ?? 0) * 1_000, call.waitMs)),
  async bulkRuns(call) {
    const { action, filter, dryRun = false, reason } = call.body;
    const { ids, ...given } = filter;
    const targets = ids === undefined ? undefined : await recordsOf(call, ids);
    if (dryRun) return { ...(await countTargets(call, action, targets, given)), dryRun };
    return { ...(await applyToAll(call, action, reason, targets, given)), more: false, dryRun };
  },
  async listReasons(call) {
    const view = viewOf(call);
    const items = [];
    for (const record of await recordsOf(call, call.query.run)) {
      call.signal.throwIfAborted();
      items.push(await readRunNow(call.host.store, record, view));
    }
    return { items };
  },
  countRuns: ({ host, caller, query }) => countRuns(host.store, caller, query?.definition, query?.tag),
};

function pageBody({ records, next }: RunPage): {
  items: ReturnType<typeof summaryOf>[];
  next?: string;
} {
  return { items: records.map(summaryOf), ...(next !== undefined && { next: String(next) }) };
}

/** The runs with these ids that the caller may see. */
async function recordsOf(
  { host, caller }: Pick<Call, "host" | "caller">,
  ids: readonly string[],
): Promise<readonly RunRecord[]> {
  const records: RunRecord[] = [];
  for (const id of new Set(ids)) {
    const record = await host.store.findRun(id);
    if (record !== undefined && maySeeRun(caller, record)) records.push(record);
  }
  return records;
}

/** More than the store needs to read the outcome of a run. */
const READ_MS = 10_000;

/** 200 with the output, 202 while the run has not ended; throws why it did not complete. */
export async function readResult(
  call: Pick<Call, "host" | "caller" | "params" | "payloads" | "signal">,
  waitMs: number,
): Promise<Response> {
  const record = await getRecord(call);
  const answer = (status: RunStatus, output: { readonly output?: unknown }, code: number): Response =>
    jsonResponse(
      { run: record.id, status, ...output },
      { status: code, headers: { "cache-control": "no-store", ...(code === 202 && { "retry-after": "1" }) } },
    );
  const isOver = hasEnded(record.status) || isStopped(record.status);
  if (!isOver && waitMs === 0) return answer(record.status, {}, 202);
  try {
    // The outcome of a run that is over is only read: that takes as long as the store needs.
    const timeout = isOver ? Math.max(READ_MS, waitMs) : waitMs;
    const output: unknown = await accessOf(call.host).handle(record).result({ timeout, signal: call.signal });
    return answer("completed", output === undefined ? {} : { output: payloadToWire(output, call.payloads) }, 200);
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== "RESULT_TIMEOUT") throw error;
    return answer((await getRecord(call)).status, {}, 202);
  }
}

export function isStopped(status: RunStatus): boolean {
  return status === "blocked" || status === "determinism_violation";
}

// ── many runs ──

/** As in `engine.bulk`. */
const APPLIES: Readonly<Record<BulkAction, (status: RunStatus) => boolean>> = {
  cancel: (status) => !hasEnded(status) && status !== "expected",
  terminate: (status) => !hasEnded(status) && status !== "expected",
  retry: (status) => status === "failed",
  pause: (status) => status === "queued" || status === "running" || status === "waiting",
  resume: (status) => status === "paused" || isStopped(status),
};

/** A dry run counts no further. */
const MAX_COUNTED = 10_000;
const PAGE = 500;

type Given = Parameters<typeof selectionOf>[0];

async function* targetsOf(
  { host, caller, signal }: Pick<Call, "host" | "caller" | "signal">,
  records: readonly RunRecord[] | undefined,
  given: Given,
): AsyncGenerator<readonly RunRecord[]> {
  if (records !== undefined) return yield records;
  const selection = selectionOf(given);
  for (let before: number | undefined; ;) {
    signal.throwIfAborted();
    const { records: page, next } = await listPage(host.store, caller, selection, PAGE, before);
    yield page;
    if (next === undefined) return;
    before = next;
  }
}

async function countTargets(
  call: Pick<Call, "host" | "caller" | "signal">,
  action: BulkAction,
  records: readonly RunRecord[] | undefined,
  given: Given,
): Promise<{ count: number; skipped: number; more: boolean }> {
  let [count, skipped] = [0, 0];
  for await (const page of targetsOf(call, records, given)) {
    const applicable = page.filter(({ status }) => APPLIES[action](status)).length;
    count += applicable;
    skipped += page.length - applicable;
    if (count + skipped >= MAX_COUNTED) return { count, skipped, more: true };
  }
  return { count, skipped, more: false };
}

async function applyToAll(
  call: Pick<Call, "host" | "caller" | "signal">,
  action: BulkAction,
  reason: string | undefined,
  records: readonly RunRecord[] | undefined,
  given: Given,
): Promise<{ count: number; skipped: number }> {
  let [count, skipped] = [0, 0];
  for await (const page of targetsOf(call, records, given)) {
    // At the same time, so that their writes share a batch.
    const applied = await Promise.all(
      page.map(async (record) => APPLIES[action](record.status) && apply(call.host, record, action, reason)),
    );
    for (const one of applied)
      if (one) count += 1;
      else skipped += 1;
  }
  return { count, skipped };
}

/** False when the run refuses the action; any other error is thrown. */
async function apply(
  host: ServerHost,
  record: RunRecord,
  action: BulkAction,
  reason: string | undefined,
): Promise<boolean> {
  const run = accessOf(host).handle(record);
  try {
    await (action === "cancel" || action === "terminate" ? run[action](reason) : run[action]());
    return true;
  } catch (error) {
    if (error instanceof RepriseError && error.family === "usage" && error.code !== "ENGINE_CLOSED") return false;
    throw error;
  }
}
