import { expect, test } from "vitest";
import { operation, type Operation } from "../../contract/index.ts";
import type { Caller } from "../host.ts";
import { hasRole } from "./role.ts";
import { checkScope, isScoped, maySeeQueue, maySeeRun, maySeeSchedule, type ScopedCall } from "./scope.ts";

const refund = { id: "refund-1", definition: "refund", tags: ["eu", "vip"] };
const order = { id: "order-1", definition: "order", tags: ["us"] };
const host = {
  store: { findRun: async (id: string) => [refund, order].find((run) => run.id === id) },
  client: { findSchedule: async (name: string) => (name === "nightly" ? { definition: "refund" } : undefined) },
} as unknown as ScopedCall["host"];

const caller = (scopes: Partial<Caller>): Caller => ({ name: "ci", role: "operator", ...scopes });
const line = (path: `/${string}`, rest: Partial<Operation> = {}): Operation =>
  operation({ role: "viewer", method: "GET", path, group: "g", summary: "s", answer: null, example: {}, ...rest });

async function check(
  operationOf: Operation,
  who: Caller,
  params: Record<string, string> = {},
  body?: unknown,
): Promise<string> {
  return checkScope({ operation: operationOf, caller: who, params, body, host }).then(
    () => "fine",
    ({ code }: { code: string }) => code,
  );
}

test("a caller sees runs that all its scopes include", () => {
  expect(maySeeRun(undefined, refund)).toBe(true);
  expect(maySeeRun(caller({}), refund)).toBe(true);
  expect(maySeeRun(caller({ definitions: ["refund"] }), refund)).toBe(true);
  expect(maySeeRun(caller({ definitions: ["refund"] }), order)).toBe(false);
  expect(maySeeRun(caller({ tags: ["vip"] }), refund)).toBe(true);
  expect(maySeeRun(caller({ definitions: ["refund"], tags: ["us"] }), refund)).toBe(false);
  expect(maySeeRun(caller({ run: "refund-1" }), refund)).toBe(true);
  expect(maySeeRun(caller({ run: "refund-2" }), refund)).toBe(false);
  expect(maySeeQueue(caller({ queues: ["a"] }), "b")).toBe(false);
  expect(maySeeQueue(caller({ run: "refund-1" }), "b")).toBe(false);
  expect(maySeeSchedule(caller({ tags: ["vip"] }), "refund")).toBe(false);
  expect([isScoped(undefined), isScoped(caller({})), isScoped(caller({ queues: ["a"] }))]).toEqual([
    false,
    false,
    true,
  ]);
});

test("a run outside of the scope does not exist, also as the other side of a comparison", async () => {
  const who = caller({ definitions: ["refund"] });
  const detail = line("/v1/runs/{id}");
  expect(await check(detail, who, { id: "refund-1" })).toBe("fine");
  expect(await check(detail, who, { id: "order-1" })).toBe("RUN_NOT_FOUND");
  expect(await check(detail, who, { id: "absent" })).toBe("RUN_NOT_FOUND");
  expect(await check(line("/v1/runs/{id}/diff/{other}"), who, { id: "refund-1", other: "order-1" })).toBe(
    "RUN_NOT_FOUND",
  );
});

test("definitions, queues and schedules outside of the scope do not exist", async () => {
  const who = caller({ definitions: ["refund"], queues: ["mail"] });
  expect(await check(line("/v1/definitions/{name}"), who, { name: "order" })).toBe("UNKNOWN_DEFINITION");
  expect(await check(line("/v1/queues/{name}/pause"), who, { name: "pay" })).toBe("QUEUE_NOT_FOUND");
  expect(await check(line("/v1/queues/{name}"), who, { name: "mail" })).toBe("fine");
  expect(await check(line("/v1/schedules/{name}"), who, { name: "nightly" })).toBe("fine");
  expect(await check(line("/v1/schedules/{name}"), caller({ definitions: ["order"] }), { name: "nightly" })).toBe(
    "SCHEDULE_NOT_FOUND",
  );
});

test("a caller with tags starts only runs that it can see", async () => {
  const start = line("/v1/definitions/{name}/runs", { method: "POST" });
  const who = caller({ tags: ["eu"] });
  expect(await check(start, who, { name: "refund" }, { tags: ["eu", "x"] })).toBe("fine");
  expect(await check(start, who, { name: "refund" }, { tags: ["us"] })).toBe("ROLE_REQUIRED");
  expect(await check(start, who, { name: "refund" }, undefined)).toBe("ROLE_REQUIRED");
  const fork = line("/v1/runs/{id}/fork", { method: "POST" });
  expect(await check(fork, who, { id: "refund-1" }, { tags: ["eu"] })).toBe("fine");
  expect(await check(fork, who, { id: "refund-1" }, {})).toBe("ROLE_REQUIRED");
});

test("an operation about the whole server refuses a caller with scopes, unless the table says how it filters", async () => {
  const who = caller({ definitions: ["refund"] });
  expect(await check(line("/v1/workers"), who)).toBe("ROLE_REQUIRED");
  expect(await check(line("/v1/workers"), caller({}))).toBe("fine");
  expect(await check(line("/v1/runs", { scope: "filtered" }), who)).toBe("fine");
  expect(await check(line("/v1/site", { scope: "open" }), who)).toBe("fine");
  expect(await check(line("/v1/runs/bulk", { method: "POST" }), who)).toBe("ROLE_REQUIRED");
});

test("a browser token reaches its run only, and one for a stream that stream only", async () => {
  const who = caller({ run: "refund-1", role: "reader" });
  expect(await check(line("/v1/runs/{id}/journal"), who, { id: "refund-1" })).toBe("fine");
  expect(await check(line("/v1/runs/{id}/journal"), who, { id: "order-1" })).toBe("RUN_NOT_FOUND");
  expect(await check(line("/v1/definitions/{name}"), who, { name: "refund" })).toBe("ROLE_REQUIRED");
  expect(await check(line("/v1/tokens", { method: "POST" }), who)).toBe("ROLE_REQUIRED");
  expect(await check(line("/v1/events", { scope: "filtered" }), who)).toBe("fine");
  const stream = line("/v1/runs/{id}/streams/{name}");
  const words = caller({ run: "refund-1", stream: "words", role: "reader" });
  expect(await check(stream, words, { id: "refund-1", name: "words" })).toBe("fine");
  expect(await check(stream, words, { id: "refund-1", name: "log" })).toBe("ROLE_REQUIRED");
  expect(await check(stream, words, { id: "order-1", name: "words" })).toBe("RUN_NOT_FOUND");
  expect(await check(line("/v1/runs/{id}"), words, { id: "refund-1" })).toBe("ROLE_REQUIRED");
  expect(await check(line("/v1/events", { scope: "filtered" }), words)).toBe("ROLE_REQUIRED");
});

test("a role has the rights of those before it, and an unknown role has none", () => {
  expect(hasRole({ role: "operator" }, "approver")).toBe(true);
  expect(hasRole({ role: "approver" }, "operator")).toBe(false);
  expect(hasRole({ role: "viewer" }, "viewer")).toBe(true);
  expect(hasRole({ role: "root" as "admin" }, "viewer")).toBe(false);
  expect(hasRole({ role: "admin" }, "owner" as "admin")).toBe(false);
});
