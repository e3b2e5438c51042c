// Webhooks: events of runs reach real HTTP receivers, signed, at least once, and delay nothing else.

import { createClient, createEngine, flow, promise, typed, workflow, type Engine, type Webhook } from "reprise";
import { createServer, type Server } from "reprise/server";
import { expect, test } from "vitest";
import { createFolder, createGate } from "../engine/world.ts";
import { NEXT_SECRET, refusalOf, SECRET, startReceiver, type Delivery } from "./receiver.ts";

const order = workflow("order", async (ctx, total: number) => {
  await ctx.run(
    "charge",
    () => {
      if (total < 0)
        throw Object.assign(new Error(`cannot charge ${total}`), { code: "CARD_DECLINED", retryable: false });
    },
    { retry: { maxAttempts: 1 } },
  );
  return { total, at: new Date(0) };
});
const review = workflow("review", { ports: { approval: promise<boolean>() } }, async (ctx, what: string) => {
  return (await ctx.promise("approval", { key: "ann", show: { what }, timeout: "1 day" })) ?? false;
});

/** What an event says, without ids and times. */
function line({ body: { type, data } }: Delivery): string {
  return `${type} ${String(data["run"])} ${String(data["status"] ?? data["port"])}`;
}

async function start(
  webhooks: Webhook[],
  logger?: Parameters<typeof createEngine>[0]["logger"],
): Promise<Engine<typeof order | typeof review>> {
  return createEngine({ store: "sqlite::memory:", definitions: [order, review], webhooks, logger: logger ?? false });
}

test("every end, stop and open promise is delivered, signed, with metadata only", async () => {
  await using receiver = await startReceiver();
  await using engine = await start([{ url: receiver.url, secret: SECRET }]);
  await engine.start(order, 5, { id: "paid" });
  await engine.start(order, -5, { id: "declined" });
  await engine.start(review, "a secret", { id: "asked" });
  await receiver.got(3);
  await (await engine.get(review, "asked")).terminate("a secret");
  const deliveries = await receiver.got(4);
  expect(deliveries.map(line).toSorted()).toEqual([
    "promise.opened asked approval",
    "run.ended asked cancelled",
    "run.ended paid completed",
    "run.failed declined failed",
  ]);
  expect(deliveries.map((one) => refusalOf(one))).toEqual([undefined, undefined, undefined, undefined]);
  expect(new Set(deliveries.map(({ id }) => id)).size).toBe(4);
  const failed = deliveries.find(({ body }) => body.type === "run.failed")!;
  expect(failed.body).toEqual({
    type: "run.failed",
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    data: {
      run: "declined",
      definition: "order",
      version: 1,
      generation: 0,
      entry: expect.any(Number) as number,
      status: "failed",
      code: "CARD_DECLINED",
    },
  });
  expect(JSON.stringify(deliveries.map(({ body }) => body))).not.toMatch(/a secret|cannot charge|total/);
});

test("a call that waits for the budget of its run is reported once, with metadata only, and so is the next one after a raise", async () => {
  const cost = { reserve: { calls: 1 }, actual: () => ({ calls: 1 }) };
  const crawl = workflow("crawl", { budget: { calls: 1 } }, async (ctx) => {
    for (const page of ["a", "b", "c"]) await ctx.run("fetch", () => page, { cost });
  });
  await using receiver = await startReceiver();
  const webhooks = [{ url: receiver.url, secret: SECRET }];
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [crawl], webhooks, logger: false });
  const run = await engine.start(crawl, undefined, { id: "crawl-1" });
  const [reached] = await receiver.got(1);
  expect(reached?.body).toEqual({
    type: "budget.reached",
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    data: {
      run: "crawl-1",
      definition: "crawl",
      version: 1,
      generation: 0,
      entry: expect.any(Number) as number,
      status: "waiting",
    },
  });
  expect(refusalOf(reached!)).toBeUndefined();
  await run.raise({ calls: 1 }, { by: "ann", reason: "a secret" });
  await receiver.got(2);
  await run.raise({ calls: 1 });
  await run.result();
  const all = await receiver.got(3);
  expect(all.map(({ body }) => body.type)).toEqual(["budget.reached", "budget.reached", "run.ended"]);
  expect(new Set(all.map(({ id }) => id)).size).toBe(3);
  expect(JSON.stringify(all.map(({ body }) => body))).not.toMatch(/a secret|ann/);
});

test("forks of an evaluation are not reported; its report is", async () => {
  await using receiver = await startReceiver();
  await using engine = await start([{ url: receiver.url, secret: SECRET }]);
  const asked = await engine.start(review, "a plan", { id: "asked" });
  await engine.start(order, 5, { id: "paid" });
  await receiver.got(2);
  await asked.resolve("approval", true, { key: "ann" });
  await receiver.got(3);
  const { counts } = await engine.evaluate(order, { runs: ["paid"], id: "nightly" });
  await engine.evaluate(review, { runs: ["asked"], id: "weekly" });
  expect(counts.total).toBe(1);
  // Another fork is a run as any other.
  await engine.get(order, "paid").fork({ at: "input", effects: "recorded", id: "again" });
  expect((await receiver.got(6)).map(line).toSorted()).toEqual([
    "promise.opened asked approval",
    "run.ended again completed",
    "run.ended asked completed",
    "run.ended nightly completed",
    "run.ended paid completed",
    "run.ended weekly completed",
  ]);
});

test("payloads, links, definitions and further headers are sent if asked", async () => {
  await using receiver = await startReceiver();
  const link: Webhook["link"] = ({ run, port, key, deadline }) =>
    `https://example.org/a/${run}/${port}/${key}/${deadline instanceof Date}`;
  await using engine = await start([
    {
      url: receiver.url,
      secret: [SECRET, NEXT_SECRET],
      payloads: true,
      link,
      definitions: [review, "order"],
      headers: { authorization: "Bearer x" },
    },
    { name: "none", url: receiver.url, secret: SECRET, definitions: ["other"] },
    { name: "failures", url: receiver.url, secret: SECRET, events: ["run.stopped"] },
  ]);
  await engine.start(review, "new car", { id: "asked" });
  await receiver.got(1);
  await engine.start(order, 7, { id: "paid" });
  await receiver.got(2);
  await engine.start(order, -7, { id: "declined" });
  const [asked, paid, declined] = await receiver.got(3);
  expect(asked?.body.data).toMatchObject({
    port: "approval",
    key: "ann",
    show: { what: "new car" },
    link: "https://example.org/a/asked/approval/ann/true",
  });
  expect(paid?.body.data["output"]).toEqual({ total: 7, at: "1970-01-01T00:00:00.000Z" });
  expect(declined?.body.data["error"]).toMatchObject({
    message: expect.stringContaining("cannot charge -7") as string,
  });
  expect(asked?.headers.get("authorization")).toBe("Bearer x");
  // Both secrets, one after the other.
  expect([refusalOf(asked!), refusalOf(asked!, NEXT_SECRET)]).toEqual([undefined, undefined]);
  expect(refusalOf(asked!, "whsec_" + Buffer.alloc(32, 9).toString("base64"))).toBe("its signature does not match");
});

test("a failed delivery is repeated under the same id, after the time that the endpoint asks for", async () => {
  await using receiver = await startReceiver((n) =>
    n === 0 ? { status: 503, headers: { "retry-after": "1" } } : n === 1 ? 302 : 200,
  );
  await using engine = await start([{ url: receiver.url, secret: SECRET }]);
  await engine.start(order, 5, { id: "paid" });
  const deliveries = await receiver.got(3);
  expect(new Set(deliveries.map(({ id }) => id)).size).toBe(1);
  const times = deliveries.map(({ headers }) => Number(headers.get("webhook-timestamp")));
  expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(1);
});

test("410 ends the deliveries of an event, with an error in the log", async () => {
  await using receiver = await startReceiver(() => 410);
  const dropped = createGate<string>();
  const quiet = (): void => undefined;
  await using engine = await start([{ name: "old", url: receiver.url, secret: SECRET }], {
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (message) => dropped.open(message),
  });
  await engine.start(order, 5, { id: "paid" });
  expect(await dropped.opened).toBe(
    "The event run.ended of run paid for the webhook old is dropped: the endpoint answered 410.",
  );
  await expect.poll(() => engine.prune({ olderThan: 0 })).toMatchObject({ runs: 1 });
  expect(receiver.deliveries.length).toBe(1);
});

test("an endpoint that never answers delays neither messages of its run nor other endpoints", async () => {
  await using dead = await startReceiver(() => "never");
  await using alive = await startReceiver();
  const mailed: unknown[] = [];
  const enough = createGate();
  const chatty = workflow("chatty", async (ctx, n: number) => {
    ctx.send("mail", n);
    await ctx.run("step", () => n);
    ctx.send("mail", -n);
  });
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [chatty],
    worker: { concurrency: 2 },
    outbox: { mail: (payload) => void (mailed.push(payload) === 80 && enough.open()) },
    webhooks: [
      { name: "dead", url: dead.url, secret: SECRET },
      { name: "alive", url: alive.url, secret: SECRET },
    ],
    logger: false,
  });
  const runs = await Promise.all(Array.from({ length: 40 }, (_, n) => engine.start(chatty, n + 1, { id: `run-${n}` })));
  await Promise.all(runs.map((run) => run.result()));
  await enough.opened;
  expect(new Set((await alive.got(40)).map(({ id }) => id)).size).toBe(40);
  // A few requests at a time.
  expect(dead.deliveries.length).toBeLessThanOrEqual(8);
});

test("a flow, a stop and a client without a worker write events, too", async () => {
  using folder = createFolder();
  await using receiver = await startReceiver();
  const webhooks: Webhook[] = [{ url: receiver.url, secret: SECRET }];
  const double = flow("double", { input: typed<number>() })
    .action("twice", ["input"], (_ctx, { input }) => input * 2)
    .output(["twice"], ({ twice }) => twice);
  let calls = 0;
  const unstable = workflow("unstable", { ports: { go: promise() } }, async (ctx) => {
    await ctx.run(calls++ === 0 ? "first" : "other", () => 1);
    await ctx.promise("go");
  });
  const store = `sqlite:${folder.file("shop.db")}`;
  {
    await using engine = await createEngine({ store, definitions: [double, unstable], webhooks, logger: false });
    await engine.start(double, 4, { id: "flow-1" });
    await engine.start(unstable, undefined, { id: "unstable-1" });
    await receiver.got(2);
  }
  {
    // Replays the run, with other code.
    await using engine = await createEngine({ store, definitions: [unstable], webhooks, logger: false });
    await (await engine.get(unstable, "unstable-1")).resolve("go");
    await receiver.got(3);
  }
  {
    await using client = await createClient({ store, definitions: [unstable], webhooks, logger: false });
    await (await client.get(unstable, "unstable-1")).terminate();
  }
  await using _engine = await createEngine({ store, definitions: [unstable], webhooks, logger: false });
  expect((await receiver.got(4)).map(line).toSorted()).toEqual([
    "promise.opened unstable-1 go",
    "run.ended flow-1 completed",
    "run.ended unstable-1 cancelled",
    "run.stopped unstable-1 determinism_violation",
  ]);
});

test("wrong webhooks are refused before a store is opened, without quoting the secret", async () => {
  const refused = async (webhooks: unknown): Promise<string> =>
    start(webhooks as Webhook[]).then(
      () => "accepted",
      (error: Error) => error.message,
    );
  const url = "https://example.org/";
  expect(await refused("x")).toContain("webhooks: expected an array");
  expect(await refused([{ url: "file:///etc/passwd", secret: SECRET }])).toContain(
    "webhooks[0].url: expected an address with http:",
  );
  expect(await refused([{ url: "https://user:pass@example.org/", secret: SECRET }])).toContain("without user");
  expect(await refused([{ url, secret: "whsec_hunter2" }])).toMatch(
    /^(?!.*hunter2).*webhooks\[0\]\.secret: expected whsec_/,
  );
  expect(await refused([{ url, secret: [] }])).toContain("at least one secret");
  expect(await refused([{ url, secret: SECRET, events: ["run.paused"] }])).toContain(
    "webhooks[0].events: expected some of",
  );
  expect(
    await refused([
      { url, secret: SECRET },
      { url, secret: SECRET },
    ]),
  ).toContain("two of them have the name example.org");
  expect(await refused([{ url, secret: SECRET, headers: { "webhook-id": "x" } }])).toContain(
    "Reprise sets webhook-id itself",
  );
});

test("an open promise is reported with a link that answers it, and without one if it has its answer", async () => {
  const created = Promise.withResolvers<Server>();
  await using receiver = await startReceiver((n) => (n === 0 ? { status: 503, headers: { "retry-after": "0" } } : 204));
  await using engine = await start([
    {
      url: receiver.url,
      secret: SECRET,
      events: ["promise.opened"],
      link: async ({ run, port, key }) =>
        (
          await (
            await created.promise
          ).approvalLink(run, port, { name: "finance", approve: true, reject: false, ...(key && { key }) })
        ).url,
    },
  ]);
  await using opened = createServer(engine, { origin: "https://runs.example.org", secret: "x".repeat(32) });
  created.resolve(opened);
  const run = await engine.start(review, "new car", { id: "asked" });
  const [first] = await receiver.got(1);
  expect(first?.body.data["link"]).toMatch(/^https:\/\/runs\.example\.org\/a\/./);
  await run.resolve("approval", true, { key: "ann" });
  expect(await run.result()).toBe(true);
  const [, second] = await receiver.got(2);
  expect([second?.id, second?.body.data["link"]]).toEqual([first?.id, undefined]);
});
