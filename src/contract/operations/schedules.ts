// Schedules: their next and last times, and what an operator can do with them.

import { integer, object, optional, pageOf, text, time } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { scheduleBody } from "../queue.ts";
import { runSummary } from "../run.ts";
import { paging, reason, reasonBody } from "./parameters.ts";

export const scheduleOperations = {
  listSchedules: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/schedules",
    scope: "filtered",
    group: "Schedules",
    summary: "Lists the schedules of the store, by name.",
    query: object(paging),
    answer: pageOf(scheduleBody),
    example: {},
  }),
  getSchedule: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/schedules/{name}",
    group: "Schedules",
    summary: "Reads a schedule and why it has not started its next run.",
    answer: scheduleBody,
    example: { path: { name: "nightly-report" } },
  }),
  pauseSchedule: operation({
    role: "operator",
    method: "POST",
    path: "/v1/schedules/{name}/pause",
    group: "Schedules",
    summary: "Pauses a schedule: it starts no more runs.",
    body: reasonBody,
    answer: scheduleBody,
    example: { path: { name: "nightly-report" }, body: {} },
  }),
  resumeSchedule: operation({
    role: "operator",
    method: "POST",
    path: "/v1/schedules/{name}/resume",
    group: "Schedules",
    summary: "Resumes a schedule with its next planned time.",
    body: reasonBody,
    answer: scheduleBody,
    example: { path: { name: "nightly-report" }, body: {} },
  }),
  triggerSchedule: operation({
    role: "operator",
    method: "POST",
    path: "/v1/schedules/{name}/trigger",
    group: "Schedules",
    summary: "Starts one run now, in addition to the planned ones.",
    body: object({ reason, id: optional(text({ minLength: 1, description: "The same id starts one run." })) }),
    status: 201,
    answer: runSummary,
    example: { path: { name: "nightly-report" }, body: {} },
  }),
  backfillSchedule: operation({
    role: "operator",
    method: "POST",
    path: "/v1/schedules/{name}/backfill",
    group: "Schedules",
    summary: "Starts every planned time of a period that has no run yet, at most 1,000.",
    body: object({ from: time(), to: time("Not included."), reason }),
    answer: object({ count: integer() }),
    example: {
      path: { name: "nightly-report" },
      body: { from: "2026-11-01T00:00:00.000Z", to: "2026-11-03T00:00:00.000Z" },
    },
  }),
  removeSchedule: operation({
    role: "admin",
    method: "DELETE",
    path: "/v1/schedules/{name}",
    group: "Schedules",
    summary: "Removes a schedule; its runs stay.",
    status: 204,
    answer: null,
    example: { path: { name: "old-report" } },
  }),
};
