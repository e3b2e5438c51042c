// Idempotency keys: the same request with the same key has one effect and one answer.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "reprise";
import { storeOf } from "../../src/stores/index.ts";
import { createServer, type Server } from "reprise/server";
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

/** Every answer has another token, so that a repeated answer is recognized. */
async function mint(key: string, body: object = {}, server: Server = shop.server): Promise<Response> {
  return server.fetch(
    new Request("http://127.0.0.1:7420/v1/tokens", {
      method: "POST",
      headers: { "content-type": "application/json", "x-reprise": "1", "idempotency-key": key },
      body: JSON.stringify({ run: "order-1042", role: "reader", ...body }),
    }),
  );
}

test("the same request with the same key gets the same answer, also from another server of the store", async () => {
  const first = await mint("a");
  const answer = await first.text();
  expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([201, null]);
  await using other = createServer(shop.engine);
  for (const server of [shop.server, other]) {
    const again = await mint("a", {}, server);
    expect([again.status, again.headers.get("idempotent-replayed"), await again.text()]).toEqual([201, "true", answer]);
    expect(again.headers.get("content-type")).toBe("application/json");
  }
  expect(await (await mint("b")).text()).not.toBe(answer);
});

test("the key of another body is refused with 422, and the first answer stays", async () => {
  const answer = await (await mint("c")).text();
  const refused = await mint("c", { ttl: "5 minutes" });
  expect(refused.status).toBe(422);
  expect(await refused.json()).toMatchObject({
    code: "USAGE",
    detail: expect.stringContaining("another request") as string,
  });
  expect(await (await mint("c")).text()).toBe(answer);
});

test("requests at the same time have one effect", async () => {
  const answers = await Promise.all([mint("d"), mint("d"), mint("d")].map(async (one) => (await one).text()));
  expect(new Set(answers).size).toBe(1);
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
  const first = mint("e", {}, other);
  await reserved.promise;
  const second = await mint("e");
  expect([second.status, second.headers.get("retry-after")]).toEqual([409, "1"]);
  finish.resolve();
  const answer = await (await first).text();
  expect(await (await mint("e")).text()).toBe(answer);
});

test("a refused request frees its key", async () => {
  expect((await mint("f", { run: "absent" })).status).toBe(404);
  expect((await mint("f")).status).toBe(201);
});

test("a key that no header can carry is refused", async () => {
  expect((await mint("x".repeat(256))).status).toBe(400);
  expect((await mint("two words")).status).toBe(400);
});
