// Idempotency keys: the same request with the same key has one effect and one answer.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, createEngine, signal, update, workflow } from "reprise";
import { storeOf } from "../../src/stores/index.ts";
import { createServer, type Server } from "reprise/server";
import { openApi } from "./api.ts";
import { openExampleShop, type ExampleShop } from "./example-shop.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-keys-"));
const url = `sqlite:${join(folder, "shop.db")}`;
let shop: ExampleShop;
beforeAll(async () => {
  shop = await openExampleShop({}, url);
});
afterAll(async () => {
  await shop[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function send(key: string, value = "one", run = "order-1042", server: Server = shop.server): Promise<Response> {
  return server.fetch(
    new Request(`http://127.0.0.1:7420/v1/runs/${run}/signals/note`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-reprise": "1", "idempotency-key": key },
      body: JSON.stringify({ value }),
    }),
  );
}

const outcome = async (response: Response): Promise<readonly unknown[]> => [
  response.status,
  response.headers.get("idempotent-replayed"),
  await response.text(),
];

test("the same request with the same key gets the same answer, also from another server of the store", async () => {
  const [status, replayed, answer] = await outcome(await send("a"));
  expect([status, replayed]).toEqual([200, null]);
  await using other = createServer(shop.engine);
  for (const server of [shop.server, other])
    expect(await outcome(await send("a", "one", "order-1042", server))).toEqual([200, "true", answer]);
  expect((await outcome(await send("b")))[1]).toBe(null);
});

test("the key of another body is refused with 422, and the first answer stays", async () => {
  await send("c");
  const refused = await send("c", "two");
  expect(refused.status).toBe(422);
  expect(await refused.json()).toMatchObject({
    code: "USAGE",
    detail: expect.stringContaining("another request") as string,
  });
  expect((await outcome(await send("c")))[1]).toBe("true");
});

test("requests at the same time have one effect", async () => {
  const answers = await Promise.all([send("d"), send("d"), send("d")].map(async (one) => outcome(await one)));
  expect(answers.map(([, replayed]) => replayed).sort()).toEqual([null, "true", "true"]);
});

test("a start without an id has the key as its id, and is answered again as it was", async () => {
  const start = (input: unknown) =>
    shop.server.fetch(
      new Request("http://127.0.0.1:7420/v1/definitions/report/runs", {
        method: "POST",
        headers: { "content-type": "application/json", "x-reprise": "1", "idempotency-key": "report-9" },
        body: JSON.stringify({ tags: ["x"], ...(input === undefined ? {} : { input }) }),
      }),
    );
  const first = await start(undefined);
  expect([first.status, first.headers.get("location")]).toEqual([201, "/v1/runs/report-9"]);
  const again = await start(undefined);
  expect([again.status, again.headers.get("location"), await again.text()]).toEqual([
    201,
    "/v1/runs/report-9",
    await first.text(),
  ]);
  expect((await start("other")).status).toBe(422);
});

test("a request that another process executes is refused with 409 and Retry-After", async () => {
  const reserved = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const source = storeOf(url);
  const slow: typeof source = {
    async "~open"(options) {
      const store = await source["~open"](options);
      const record = store.recordAnswer.bind(store);
      store.recordAnswer = async (...given) => {
        reserved.resolve();
        await finish.promise;
        return record(...given);
      };
      return store;
    },
  };
  await using client = await createClient({ store: slow, definitions: [] });
  await using other = createServer(client);
  const first = send("e", "one", "order-1042", other);
  await reserved.promise;
  const second = await send("e");
  expect([second.status, second.headers.get("retry-after")]).toEqual([409, "1"]);
  finish.resolve();
  const [, , answer] = await outcome(await first);
  expect(await outcome(await send("e"))).toEqual([200, "true", answer]);
});

test("a refused request frees its key", async () => {
  expect((await send("f", "one", "order-2000")).status).toBe(404);
  await shop.engine.start("checkout" as never, { order: 2_000 } as never, { id: "order-2000" } as never);
  expect((await outcome(await send("f", "one", "order-2000"))).slice(0, 2)).toEqual([200, null]);
});

test("a key that no header can carry is refused", async () => {
  expect((await send("x".repeat(256))).status).toBe(400);
  expect((await send("two words")).status).toBe(400);
});

/** A server that dies behind the act: its key is free for the same request, and no answer is kept. */
async function dyingServer(): Promise<{ readonly server: Server } & AsyncDisposable> {
  const source = storeOf(url);
  const client = await createClient({
    store: {
      async "~open"(options) {
        const store = await source["~open"](options);
        store.recordAnswer = (keyed) => store.releaseKey(keyed, false);
        return store;
      },
    },
    definitions: [],
  });
  const server = createServer(client);
  return {
    server,
    async [Symbol.asyncDispose]() {
      await server.close();
      await client.close();
    },
  };
}

test("a trigger whose server died before it answered starts one run when it is repeated", async () => {
  const trigger = async (server: Server): Promise<string> => {
    const response = await server.fetch(
      new Request("http://127.0.0.1:7420/v1/schedules/nightly-report/trigger", {
        method: "POST",
        headers: { "x-reprise": "1", "idempotency-key": "trigger-1" },
      }),
    );
    expect(response.status).toBe(201);
    return ((await response.json()) as { id: string }).id;
  };
  await using dying = await dyingServer();
  const id = await trigger(dying.server);
  expect(await trigger(shop.server)).toBe(id);
});

test("one key for two ports of a run, or from two callers, is two messages", async () => {
  const ports = {
    first: signal<string>(),
    second: signal<string>(),
    add: update<string, string>(),
    take: update<string, string>(),
  };
  const pair = workflow("pair", { ports }, async (ctx) => {
    ctx.onUpdate("add", (what) => `added ${what}`);
    ctx.onUpdate("take", (what) => `took ${what}`);
    return [await ctx.receive("first"), await ctx.receive("second"), await ctx.receive("second")];
  });
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [pair], logger: false });
  await using api = openApi(engine);
  const run = await engine.start(pair, undefined, { id: "pair-1" });
  const key = { "idempotency-key": "1" };
  const added = await api.post("/v1/runs/pair-1/updates/add", { args: "a" }, key);
  const taken = await api.post("/v1/runs/pair-1/updates/take", { args: "b" }, key);
  expect([added.body.result, taken.body.result]).toEqual(["added a", "took b"]);
  for (const [caller, port, value] of [
    ["test", "first", "a"],
    ["test", "second", "b"],
    ["test", "second", "b"],
    ["other", "second", "c"],
  ] as const)
    expect((await api.as({ name: caller }).post(`/v1/runs/pair-1/signals/${port}`, { value }, key)).status).toBe(200);
  expect(await run.result()).toEqual(["a", "b", "c"]);
});
