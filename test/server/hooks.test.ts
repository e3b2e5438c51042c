// Hooks: webhooks of other systems start runs, send signals and resolve promises, once, and only with a valid signature.

import { createHmac } from "node:crypto";
import { createEngine, promise, signal, workflow } from "reprise";
import { callbackUrls, createServer, type Hook, type HookEvent, type Server } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signWebhook, webhookKeyOf } from "../../src/base/index.ts";
import { NEXT_SECRET, SECRET } from "./receiver.ts";

const SERVER_SECRET = "0123456789abcdef0123456789abcdef";
const deploy = workflow("deploy", async (_ctx, ref: string) => ref);
const cart = workflow("cart", { ports: { add: signal<string>(), done: promise<{ ok: boolean }>() } }, async (ctx) => {
  await ctx.promise("done");
  const items: string[] = [];
  for (
    let item = await ctx.receive("add", { timeout: 0 });
    item !== undefined;
    item = await ctx.receive("add", { timeout: 0 })
  )
    items.push(item);
  return items;
});
const payment = workflow(
  "payment",
  { ports: { paid: promise<{ amount: number }>(), note: promise<unknown>() } },
  async (ctx, key: string) => (await ctx.promise("paid", { key }))?.amount,
);

const seen: HookEvent[] = [];
const hooks: Record<string, Hook> = {
  github: {
    scheme: "github",
    secret: ["github-secret", "github-next"],
    then: (event) => {
      seen.push(event);
      return event.type === "push" ? { start: deploy, input: (event.body as { ref: string }).ref } : undefined;
    },
  },
  shop: {
    scheme: "standard",
    secret: SECRET,
    then: ({ body }) => {
      const { run, add, done } = body as { run: string; add?: string; done?: boolean };
      if (add !== undefined) return { signal: "add", definition: "cart", run, value: add };
      return { resolve: "done", definition: cart, run, value: { ok: done } };
    },
  },
  stripe: {
    scheme: "stripe",
    secret: "stripe-secret",
    then: ({ id, type, body }) => ({
      start: "deploy",
      input: `${type} ${(body as { n: number }).n}`,
      id: `invoice-${id}`,
    }),
  },
  own: {
    verify: ({ headers, bytes }) =>
      headers.get("x-own") === "yes" ? { id: `own ${"é".repeat(200)}`, type: `${bytes.length} bytes` } : undefined,
    then: ({ type, body }) => ({ start: deploy, input: `${type} ${JSON.stringify(body)}` }),
  },
};

const stack = new AsyncDisposableStack();
let engine: Awaited<ReturnType<typeof open>>;
let server: Server;

function open() {
  return createEngine({ store: "sqlite::memory:", definitions: [deploy, cart, payment], logger: false });
}

beforeAll(async () => {
  engine = stack.use(await open());
  server = stack.use(createServer(engine, { hooks, secret: SERVER_SECRET, auth: { tokens: [] } }));
});
afterAll(() => stack.disposeAsync());

async function send(path: string, body: string, headers: Record<string, string> = {}): Promise<string> {
  const url = path.startsWith("http") ? path : `http://localhost/v1/hooks/${path}`;
  const response = await server.fetch(new Request(url, { method: "POST", body, headers }));
  const { status, code } = (await response.json()) as { status?: unknown; code?: string };
  return `${response.status} ${code ?? String(status)}`;
}

function github(body: string, secret = "github-secret", id = "delivery-1", event = "push"): Promise<string> {
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  return send("github", body, { "x-hub-signature-256": signature, "x-github-delivery": id, "x-github-event": event });
}

function standard(value: unknown, id: string, { secret = SECRET, at = Date.now() } = {}): Promise<string> {
  const body = JSON.stringify(value);
  return send("shop", body, { ...signWebhook([webhookKeyOf(secret, "secret")], { id, at, body }) });
}

test("a webhook starts a run whose id is that of the webhook, so a repeated delivery starts nothing", async () => {
  const body = JSON.stringify({ ref: "main" });
  expect(await github(body)).toBe("200 done");
  expect(await github(body, "github-next")).toBe("200 done");
  // The same delivery with another body is not a second run either.
  expect(await github(JSON.stringify({ ref: "other" }))).toBe("200 repeated");
  expect(await engine.get(deploy, "github:delivery-1").result()).toBe("main");
  expect(await github(body, "github-secret", "delivery-2", "ping")).toBe("200 ignored");
  await expect(engine.get(deploy, "github:delivery-2").info()).rejects.toThrow("no run");
});

test("a webhook with a wrong signature is refused with 401 before anything reads it", async () => {
  const count = seen.length;
  const body = JSON.stringify({ ref: "evil" });
  expect(await github(body, "another-secret", "evil-1")).toBe("401 WEBHOOK_REFUSED");
  expect(await send("github", body)).toBe("401 WEBHOOK_REFUSED");
  expect(await send("github", body, { "x-hub-signature-256": "sha256=" })).toBe("401 WEBHOOK_REFUSED");
  expect(await send("github", "[".repeat(100_000), { "x-hub-signature-256": "sha256=00" })).toBe("401 WEBHOOK_REFUSED");
  expect(await send("unknown", body)).toBe("404 WEBHOOK_REFUSED");
  expect(seen.length).toBe(count);
});

test("Standard Webhooks: signals arrive once by their id, and times outside of the tolerance are refused", async () => {
  await engine.start(cart, undefined, { id: "cart-1" });
  expect(await standard({ run: "cart-1", add: "apple" }, "msg_1")).toBe("200 done");
  expect(await standard({ run: "cart-1", add: "apple" }, "msg_1")).toBe("200 done");
  expect(await standard({ run: "cart-1", add: "apple" }, "msg_2")).toBe("200 done");
  expect(await standard({ run: "cart-1", add: "pear" }, "msg_3", { secret: NEXT_SECRET })).toBe("401 WEBHOOK_REFUSED");
  for (const at of [Date.now() - 301_000, Date.now() + 302_000])
    expect(await standard({ run: "cart-1", add: "pear" }, "msg_4", { at })).toBe("401 WEBHOOK_REFUSED");
  expect(await standard({ run: "cart-1", done: true }, "msg_5")).toBe("200 done");
  expect(await standard({ run: "cart-1", done: true }, "msg_5")).toMatch(/^200 (done|late)$/);
  expect(await engine.get(cart, "cart-1").result()).toEqual(["apple", "apple"]);
  expect(await standard({ run: "cart-1", done: false }, "msg_6")).toBe("200 late");
  expect(await standard({ run: "cart-2", done: true }, "msg_7")).toBe("404 RUN_NOT_FOUND");
});

test("Stripe: the id of the event is in the body, the time is signed", async () => {
  const stripe = (body: string, seconds = Math.floor(Date.now() / 1_000)): Promise<string> => {
    const v1 = createHmac("sha256", "stripe-secret").update(`${seconds}.${body}`).digest("hex");
    return send("stripe", body, { "stripe-signature": `t=${seconds},v1=${"0".repeat(64)},v1=${v1},v0=x` });
  };
  const body = JSON.stringify({ id: "evt_1", type: "invoice.paid", n: 7 });
  expect(await stripe(body)).toBe("200 done");
  expect(await stripe(body)).toBe("200 done");
  expect(await engine.get(deploy, "invoice-evt_1").result()).toBe("invoice.paid 7");
  expect(await stripe(body, Math.floor(Date.now() / 1_000) - 600)).toBe("401 WEBHOOK_REFUSED");
  // The run's id is the user's: another input is a conflict that the sender should hear about.
  expect(await stripe(JSON.stringify({ id: "evt_1", type: "invoice.paid", n: 8 }))).toBe("409 START_CONFLICT");
});

test("an own check gets the bytes, and any id becomes the id of a run", async () => {
  expect(await send("own", "not json", { "x-own": "no" })).toBe("401 WEBHOOK_REFUSED");
  expect(await send("own", "not json", { "x-own": "yes" })).toBe("200 done");
  expect(await send("own", "not json", { "x-own": "yes" })).toBe("200 done");
  const runs = await Array.fromAsync(engine.list({ definition: "deploy", idContains: "own:" }));
  expect(runs.map(({ id }) => id.length)).toEqual([68]);
});

test("a callback URL resolves its promise with the body, once, and no other", async () => {
  const callback = callbackUrls({ origin: "http://localhost", secret: SERVER_SECRET });
  await engine.start(payment, "card", { id: "payment-1" });
  const url = callback({ run: "payment-1", port: "paid", key: "card" });
  expect(url).toBe(callback({ run: "payment-1", port: "paid", key: "card" }));
  const json = { "content-type": "application/json" };
  expect(await send(url, "{", json)).toMatch(/^400 /);
  expect(await send(url, "{}", { "content-type": "image/png" })).toBe("415 BAD_FORMAT");
  for (const wrong of [url.slice(0, -1), `${url}x`, url.replace(/wait\/../, "wait/AA"), `${url.split(".")[0]}.`])
    expect(await send(wrong, "{}", json)).toBe("401 WEBHOOK_REFUSED");
  const foreign = callbackUrls({ origin: "http://localhost", secret: "another secret of 32 characters!" });
  expect(await send(foreign({ run: "payment-1", port: "paid" }), "{}", json)).toBe("401 WEBHOOK_REFUSED");
  expect(await send(callback({ run: "payment-1", port: "nothing" }), "{}", json)).toBe("404 UNKNOWN_PORT");
  expect(await send(callback({ run: "payment-2", port: "paid" }), "{}", json)).toBe("404 RUN_NOT_FOUND");
  expect(
    await send(callback({ run: "payment-1", port: "note" }), "a=1&b=2", {
      "content-type": "application/x-www-form-urlencoded",
    }),
  ).toBe("200 done");
  expect(await send(url, '{"amount":5}', json)).toBe("200 done");
  expect(await engine.get(payment, "payment-1").result()).toBe(5);
  expect(await send(url, '{"amount":6}', json)).toBe("200 late");
});

test("hooks with wrong options are refused when the server is created", () => {
  const made = (hook: unknown, name = "x"): string => {
    try {
      createServer(engine, { hooks: { [name]: hook as Hook } });
      return "accepted";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const then = (): undefined => undefined;
  expect(made({ scheme: "github", secret: "12345678" })).toContain("hooks.x.then: expected a function");
  expect(made({ scheme: "github", then })).toContain("hooks.x.secret: expected the secret");
  expect(made({ scheme: "github", secret: "shh", then })).toContain("of 8 characters or more");
  expect(made({ scheme: "gitlab", secret: "12345678", then })).toContain("hooks.x.scheme: expected");
  expect(made({ scheme: "standard", secret: "12345678", then })).toContain("hooks.x.secret: expected whsec_");
  expect(made({ scheme: "github", secret: "12345678", verify: then, then })).toContain(
    "either scheme and secret, or verify",
  );
  expect(made({ scheme: "github", secret: "12345678", then }, "wait")).toContain("one segment of a path");
  expect(() => callbackUrls({ origin: "x", secret: SERVER_SECRET })).toThrow("callbackUrls: origin");
  expect(() => callbackUrls({ origin: "https://x.example", secret: "short" })).toThrow("callbackUrls: secret");
});
