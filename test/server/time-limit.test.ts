// The time limit of a request, with timers of the test.

import { expect, test } from "vitest";
import { systemRandom } from "../../src/base/index.ts";
import { object, operation } from "../../src/contract/index.ts";
import { RequestHandler } from "../../src/http/index.ts";
import { silentLogger } from "../../src/kernel/index.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { ServerAccess } from "../../src/server/auth/server-access.ts";
import type { Call, ServerHost } from "../../src/server/host.ts";
import { IdempotentRequests } from "../../src/server/idempotency.ts";
import { operationRoute } from "../../src/server/operation-route.ts";
import { problemResponse } from "../../src/server/problem.ts";
import { SERVER_LIMITS } from "../../src/server/server-limits.ts";

function open(isWaiting: boolean) {
  const time = createVirtualTime();
  const ports = { clock: time.clock, timers: time.timers, random: systemRandom, logger: silentLogger };
  const spec = operation({
    role: "public",
    method: "GET",
    path: "/v1/slow",
    group: "Site",
    summary: "Never answers.",
    answer: object({}),
    ...(isWaiting && { waits: true as const }),
    example: {},
  });
  const refuse = (error: unknown): Response => problemResponse(error, "http://127.0.0.1/", () => undefined);
  const asked = Promise.withResolvers<Call>();
  const host = { ...ports, access: new ServerAccess({}, ports) } as unknown as ServerHost;
  const handler = (call: Call): Promise<never> => {
    asked.resolve(call);
    return new Promise((_resolve, reject) => {
      call.signal.addEventListener("abort", () => reject(call.signal.reason as Error));
    });
  };
  const route = operationRoute(
    { id: "slow", operation: spec, handler },
    {
      host,
      limits: SERVER_LIMITS,
      timers: time.timers,
      basePath: "",
      refuse,
      requests: new IdempotentRequests(SERVER_LIMITS.requestMs),
    },
  );
  const closing = (): Error => new Error("closing");
  const server = new RequestHandler({ routes: [route], limits: SERVER_LIMITS, notFound: closing, closing, refuse });
  const answer = server.handle(new Request("http://127.0.0.1/v1/slow"));
  return { time, server, answer, asked: asked.promise };
}

test("a request is ended after 10 s: its signal aborts, and the client gets 503 with Retry-After", async () => {
  const { time, answer, asked } = open(false);
  const { signal } = await asked;
  time.advanceTo(time.now() + 9_999);
  expect(signal.aborted).toBe(false);
  time.advanceTo(time.now() + 1);
  expect(signal.aborted).toBe(true);
  const response = await answer;
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  expect(await response.json()).toMatchObject({
    status: 503,
    code: "LIMIT_EXCEEDED",
    detail: expect.stringContaining("10000 ms") as string,
  });
});

test("an operation that waits has no such limit", async () => {
  const { time, answer, asked, server } = open(true);
  const { signal } = await asked;
  time.advanceTo(time.now() + 600_000);
  expect(signal.aborted).toBe(false);
  await server.close();
  await answer;
});
