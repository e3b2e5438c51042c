// Schedules: their next and last times, and what an operator can do with them.

import { RepriseError } from "../../base/index.ts";
import type { ScheduleBody, scheduleOperations } from "../../contract/index.ts";
import type { ScheduleHandle, ScheduleInfo } from "../../engine/index.ts";
import { jsonResponse } from "../../http/index.ts";
import { explainSchedule } from "../../explain/index.ts";
import { maySeeSchedule } from "../auth/scope.ts";
import type { Call, HandlersOf } from "../host.ts";
import { reasonBody } from "../read/reason-body.ts";
import { DEFAULT_LIMIT, timeOf } from "../read/run-selection.ts";
import { getRecord, summaryOf } from "../read/run-summary.ts";
import { isoOf, viewOf } from "../read/view.ts";

/** As long as a random id, for which every name of a schedule leaves room. */
const ID_LENGTH = 32;

export const scheduleHandlers: HandlersOf<typeof scheduleOperations> = {
  async listSchedules({ host, caller, query }) {
    const { limit = DEFAULT_LIMIT, after = "" } = query ?? {};
    const now = host.store.now();
    const items: ScheduleBody[] = [];
    for await (const info of host.client.listSchedules()) {
      if (info.name <= after || !maySeeSchedule(caller, info.definition)) continue;
      if (items.length === limit) return { items, next: items.at(-1)!.name };
      items.push(scheduleBody(info, now));
    }
    return { items };
  },
  async getSchedule(call) {
    const { store } = call.host;
    const info = await (await getHandle(call)).info();
    const record = await store.findSchedule(info.name);
    const view = viewOf(call);
    const reasons = record === undefined ? [] : await explainSchedule(store, record);
    return { ...scheduleBody(info, store.now()), reasons: reasons.map((reason) => reasonBody(reason, view)) };
  },
  pauseSchedule: (call) => change(call, (schedule) => schedule.pause()),
  resumeSchedule: (call) => change(call, (schedule) => schedule.resume()),
  async triggerSchedule(call) {
    const given = call.body.id ?? call.keyId?.slice(0, ID_LENGTH);
    const { id } = await (await getHandle(call)).trigger(given === undefined ? {} : { id: given });
    const record = await getRecord({ host: call.host, caller: undefined, params: {} }, id);
    const root = call.url.pathname.replace(/\/schedules\/.*$/s, "");
    const headers = { location: `${root}/runs/${encodeURIComponent(id)}`, "cache-control": "no-store" };
    return jsonResponse(summaryOf(record), { status: 201, headers });
  },
  async backfillSchedule(call) {
    const { from, to } = call.body;
    const schedule = await getHandle(call);
    return schedule.backfill(new Date(timeOf(from, "from")), new Date(timeOf(to, "to")));
  },
  async removeSchedule(call) {
    await (await getHandle(call)).remove();
    return new Response(null, { status: 204 });
  },
};

async function getHandle({ host, params }: Pick<Call, "host" | "params">): Promise<ScheduleHandle> {
  const name = params["name"] ?? "";
  if ((await host.client.findSchedule(name)) !== undefined) return host.client.getSchedule(name);
  throw new RepriseError("SCHEDULE_NOT_FOUND", `There is no schedule ${name}. See \`reprise schedule list\`.`);
}

async function change(
  call: Pick<Call, "host" | "params">,
  act: (schedule: ScheduleHandle) => Promise<void>,
): Promise<ScheduleBody> {
  const schedule = await getHandle(call);
  await act(schedule);
  return scheduleBody(await schedule.info(), call.host.store.now());
}

function scheduleBody(info: ScheduleInfo, now: number): ScheduleBody {
  const { name, definition, cron, timeZone, everyMs, overlap, catchUp, jitterMs, paused } = info;
  const { nextAt, lastAt, lastRun, lastStatus, waiting, createdAt } = info;
  const lagMs = nextAt === undefined ? undefined : now - nextAt.getTime();
  return {
    name,
    definition,
    ...(cron !== undefined && { cron }),
    ...(timeZone !== undefined && { timeZone }),
    ...(everyMs !== undefined && { everyMs }),
    overlap,
    catchUp,
    jitterMs,
    paused,
    ...(nextAt !== undefined && { nextAt: isoOf(nextAt) }),
    ...(lastAt !== undefined && { lastAt: isoOf(lastAt) }),
    ...(lastRun !== undefined && { lastRun }),
    ...(lastStatus !== undefined && { lastStatus }),
    waiting: waiting.map(isoOf),
    createdAt: isoOf(createdAt),
    ...(lagMs !== undefined && lagMs > 0 && { lagMs }),
  };
}
