// Programs of the public API that must compile, as users write them. Checked by `tsc`, never run.

import {
  aesGcm,
  CancelledError,
  createClient,
  createEngine,
  FatalError,
  promise,
  queue,
  query,
  rekey,
  RepriseError,
  RetryLaterError,
  signal,
  task,
  typed,
  update,
  workflow,
  type BulkReport,
  type Duration,
  type ErrorCode,
  type InputOf,
  type OutputOf,
  type PayloadCodec,
  type QueueInfo,
  type Run,
  type RunInfo,
  type ScheduleHandle,
  type ScheduleInfo,
  type ScheduleOptions,
  type RunStatus,
  type Undo,
  type Task,
} from "reprise";
import { sqlite } from "reprise/sqlite";
import { crashEverywhere, createTestEngine, expectReplay, saveJournal, storeCases, stub } from "reprise/testing";
import { z } from "zod";

/** Compiles when the two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._same: Same<A, B> extends true ? [] : [never]): void {}

// ── API.md, program 1: an order saga with an approval that may run out ──

interface Order {
  id: string;
  cents: number;
}
interface Payment {
  id: string;
}
declare const payments: {
  charge(cents: number, key: string): Promise<Payment>;
  refund(payment: Payment): Promise<void>;
};
declare const carrier: { label(order: Order): Promise<string> };

const charge = task("charge", { retry: { maxAttempts: 5 } }, (ctx, order: Order) =>
  payments.charge(order.cents, ctx.idempotencyKey),
);
const refund = task("refund", (_ctx, payment: Payment) => payments.refund(payment));
export const checkout = workflow(
  "checkout",
  { ports: { approval: promise<{ ok: boolean }>() } },
  async (ctx, order: Order) => {
    const payment = await ctx.task(charge, order, { undo: refund });
    const approval = await ctx.promise("approval", { timeout: "2 days" });
    same<typeof approval, { ok: boolean } | undefined>();
    if (!approval?.ok) throw new FatalError("not approved");
    const label = await ctx.run("print label", () => carrier.label(order));
    return { payment, label };
  },
);

export async function orders(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite:shop.db", definitions: [checkout, charge, refund] });
  const run = await engine.start(checkout, { id: "7", cents: 990 }, { id: "order-7", tags: ["web"], priority: 3 });
  await run.resolve("approval", { ok: true });
  await run.reject("approval", new Error("fraud"));
  const { payment, label } = await run.result({ timeout: "1 minute" });
  same<typeof payment, Payment>();
  same<typeof label, string>();
  const again: Run<typeof checkout> = engine.get(checkout, "order-7");
  same<Awaited<ReturnType<typeof again.result>>, { payment: Payment; label: string }>();
  const byName = engine.get("checkout", "order-7");
  same<Awaited<ReturnType<typeof byName.result>>, { payment: Payment; label: string }>();
  await engine.start("checkout", { id: "8", cents: 1 });
  const info: RunInfo | undefined = await engine.find("order-7");
  const status: RunStatus | undefined = info?.status;
  for await (const { id, tags } of engine.list({ definition: "checkout", status: ["waiting", "failed"], limit: 5 }))
    console.log(id, tags, status);
  for await (const { seq, type, command } of run.journal({ after: 2 })) console.log(seq, type, command);
  const verdict = await run.verify();
  console.log(verdict.status === "same" ? verdict.digest : verdict.where);
  await run.cancel("changed my mind");
  await run.resume();
  await engine.drain({ grace: "5s" });
}

same<InputOf<typeof checkout>, Order>();
same<OutputOf<typeof checkout>, { payment: Payment; label: string }>();
same<InputOf<typeof charge>, Order>();
same<OutputOf<typeof charge>, Payment>();
same<OutputOf<typeof refund>, void>();

// ── API.md, program 5: virtual time, stubs, crash at every commit, golden run ──

const remind = task("remind", async (_ctx, to: string) => ({ sent: to }));
const trial = workflow("trial", async (ctx, user: string) => {
  await ctx.sleep("30 days");
  return ctx.task(remind, user);
});

export async function tests(): Promise<void> {
  await using engine = await createTestEngine({
    definitions: [trial, remind],
    stubs: [stub(remind, (to) => ({ sent: to.toUpperCase() }))],
    now: new Date(0),
  });
  const run = await engine.start(trial, "ann");
  await engine.clock.advance("30 days");
  await engine.crash();
  const { sent } = await run.result();
  same<typeof sent, string>();
  const now: Date = engine.clock.now();
  const { output, crashes } = await crashEverywhere(trial, "ann", {
    stubs: [stub(remind, (to) => ({ sent: to })), stub("other", (input) => input)],
    drive: async (driven, id) => {
      await driven.get(trial, id).info();
      await driven.clock.advance("1 day");
    },
  });
  same<typeof output, { sent: string }>();
  await expectReplay("golden/trial-1.json", { definitions: [trial, remind] });
  await saveJournal(run, "golden/trial-1.json");
  console.log(crashes, now, storeCases.length);
}

// ── everything else a context gives ──

const Address = z.object({ city: z.string(), zip: z.string().default("0") });
const geocode = task("geocode", { input: Address, timeout: "10s", priority: 2 }, (_ctx, address) => {
  // The function gets what the schema makes of it, callers give what it takes.
  same<typeof address, { city: string; zip: string }>();
  return { lat: 1, lon: 2 };
});
same<InputOf<typeof geocode>, { city: string; zip?: string | undefined }>();

const child = workflow("child", { input: z.object({ n: z.coerce.number<string>() }) }, async (_ctx, { n }) => n);
const bare = workflow("bare", async () => "no input");
const nothing = task("nothing", () => {});

const ported = workflow("ported", { ports: { go: promise<number>(), bare: promise() } }, (ctx) => ctx.promise("go"));

export const everything = workflow(
  "everything",
  {
    ports: { approval: promise<number>(), checked: promise(z.object({ ok: z.boolean() })), bare: promise() },
    state: typed<{ count: number; names: string[] }>(),
    version: 2,
    determinism: "strict",
  },
  async (ctx, input: { id: string }) => {
    const where = await ctx.task(
      geocode,
      { city: "Rome" },
      { retry: { maxAttempts: 3, baseDelay: "1s" }, timeout: 500, priority: 1 },
    );
    same<typeof where, { lat: number; lon: number }>();
    const started = ctx.task(geocode, { city: "Rome" });
    same<Awaited<typeof started>, { lat: number; lon: number }>();
    started.cancel();
    started.cancel("found it");
    const held: Promise<{ lat: number; lon: number }> = started;
    await Promise.allSettled([held]);
    await ctx.task(nothing);
    await ctx.task(nothing, undefined, { timeout: "1s" });
    const plain = await ctx.run("plain", () => [1, 2, 3]);
    same<typeof plain, number[]>();
    const recorded = await ctx.run(
      "recorded",
      { a: input.id },
      async (op, { a }) => {
        op.heartbeat();
        op.log.info("at work", { attempt: op.attempt, aborted: op.abortSignal.aborted, key: op.idempotencyKey });
        if (op.attempt > 3) throw new RetryLaterError("1 minute", "busy");
        return a.length;
      },
      { retry: { maxAttempts: 2, retryable: (error) => !(error instanceof TypeError) } },
    );
    same<typeof recorded, number>();
    const running = ctx.child(child, { n: "5" }, { id: "child-1" });
    const childId: string = running.id;
    same<Awaited<typeof running>, number>();
    void ctx.child(bare, undefined, { detached: true });
    const without = await ctx.child(bare);
    const timer = ctx.sleep("5 minutes");
    timer.cancel();
    await ctx.sleepUntil(new Date(0), { id: "epoch" });
    const open = await ctx.promise("approval", { show: { to: "the boss" } });
    same<typeof open, number>();
    const timed = await ctx.promise("approval", { timeout: "1 day", show: input });
    same<typeof timed, number | undefined>();
    await ctx.resolve(ported, "run-1", "go", 5, { key: "ann", by: "Ann", reason: "all green" });
    await ctx.resolve(ported, "run-1", "bare");
    await ctx.reject(ported, "run-1", "go", new Error("no"), { key: "ann" });
    const keyed = await ctx.promise("approval", { key: "ann", show: input });
    same<typeof keyed, number>();
    const checked = await ctx.promise("checked");
    same<typeof checked, { ok: boolean }>();
    const came = await ctx.promise("bare", { timeout: 5 });
    same<typeof came, true | undefined>();
    const went: void = await ctx.promise("bare");
    ctx.state.set("count", (ctx.state.get("count") ?? 0) + 1);
    ctx.state.clear("names");
    ctx.state.clear();
    const keys = ctx.state.keys();
    same<typeof keys, ("count" | "names")[]>();
    const drawn = [
      ctx.random(),
      ctx.uuid(),
      ctx.now().getTime(),
      ctx.runId,
      ctx.idempotencyKey,
      ctx.abortSignal.aborted,
    ];
    const [a, b] = await Promise.all([ctx.task(geocode, { city: "a" }), ctx.run("b", () => "b")]);
    const winner = await Promise.race([ctx.run("x", () => 1), ctx.run("y", () => "2")]);
    same<typeof winner, number | string>();
    return { childId, without, went, drawn, a, b, when: new Date(), map: new Map([[1, 2n]]), bytes: new Uint8Array() };
  },
);

export const controlled = workflow("controlled", async (ctx, order: Order) => {
  const paid = await ctx.task(charge, order, { undo: async (payment) => payments.refund(payment), priority: 1 });
  same<typeof paid, Payment>();
  const seat = await ctx.run("reserve", () => ({ row: 12 }), {
    undo: async ({ row }) => row,
    retry: { maxAttempts: 2 },
  });
  same<typeof seat, { row: number }>();
  await ctx.run("reserve", order, async (_op, { id }) => ({ id }), { undo: refund });
  const undo: Undo<Payment> = refund;
  const released = await ctx.shield(async () => ctx.run("release", () => "released"));
  same<typeof released, string>();
  return { paid, undo: typeof undo };
});
const mail = queue("mail", { concurrency: 5, rate: { limit: 100, per: "1 minute" }, perKey: { concurrency: 1 } });
const parsedKey = task(
  "parsed key",
  { input: z.object({ n: z.coerce.number() }), queue: mail, key: ({ n }) => `${n}` },
  () => 1,
);
const annotated = task("annotated", { queue: mail, key: (to: string) => to }, (_ctx, to: string) => to.length);
const labelled = task("labelled", { label: "gpu", queue: mail, key: (n: number) => `${n}` }, (_ctx, n: number) => n);
same<typeof labelled, Task<"labelled", number, number>>();
const inLine = workflow("in line", { queue: mail, key: (to: string) => to, label: "eu" }, async (ctx, to: string) =>
  ctx.task(annotated, to),
);

export async function queues(): Promise<void> {
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [inLine, annotated, parsedKey, labelled],
    worker: { queues: [mail, queue("default")], labels: ["gpu", "eu"] },
  });
  await using _any = await createEngine({ store: "sqlite::memory:", definitions: [inLine], worker: { labels: "any" } });
  await engine.start(inLine, "ann", { delay: "1 hour", singleton: "ann", priority: 1 });
  await engine.start(inLine, "ann", { debounce: { key: "ann", by: "10 s" }, tags: ["x"] });
  await engine.getQueue(mail).pause();
  await engine.getQueue("mail").resume();
  await engine.getQueue(mail).limit({ concurrency: 1, rate: { limit: 1, per: 500 } });
  const [first] = await Array.fromAsync(engine.listQueues());
  same<typeof first, QueueInfo | undefined>();
}

export const hurried = workflow("hurried", { deadline: 5_000 }, async (ctx, order: Order) =>
  ctx.child(controlled, order, { deadline: "1 minute" }),
);

export async function controlling(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [controlled, charge, refund] });
  const run = await engine.start(controlled, { id: "7", cents: 1 }, { deadline: "2 days" });
  await run.pause();
  await run.resume();
  await run.cancel("why");
  await run.terminate();
  await run.terminate("why");
  await run.retry();
  await engine.bulk("retry", { status: "failed" });
  const report = await engine.bulk("pause", { definition: "controlled", status: ["queued", "waiting"] });
  same<typeof report, BulkReport>();
  await engine.bulk("terminate", {}, { onProgress: ({ count, skipped }) => console.log(count + skipped) });
}

export async function options(): Promise<void> {
  const durations: Duration[] = [5, "5ms", "5 minutes", "1.5 h", "2weeks", "1 week"];
  const codes: ErrorCode[] = ["START_CONFLICT", "RUN_FAILED"];
  await using memory = await createEngine({
    store: sqlite(":memory:"),
    definitions: [everything, bare, child, geocode, nothing],
    worker: { concurrency: 4, lease: "5s" },
    durability: "relaxed",
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    limits: { payload: "512 KB" },
    redact: { keys: ["cardNumber", /^x-internal-/], values: () => [process.env["API_KEY"] ?? ""] },
    codec: aesGcm({ keys: { "2026-11": new Uint8Array(32), "2026-12": "base64" }, current: "2026-12" }),
  });
  const own: PayloadCodec = {
    name: "own",
    encode: (text, { run, field, place }) => Buffer.from(`${run}${field}${place}${text}`),
    decode: (bytes) => Buffer.from(bytes).toString(),
  };
  const { payloads, unreadable } = await rekey({
    store: "sqlite:x.db",
    codec: own,
    onProgress: (done, total) => done / total,
  });
  same<typeof payloads, number>();
  same<typeof unreadable, number>();
  await memory.start(bare);
  await memory.start("bare", undefined, { id: "bare-1" });
  await memory.start(child, { n: "7" });
  const run = await memory.start(everything, { id: "x" });
  await run.resolve("bare");
  await run.resolve("bare", undefined, { key: "ann", by: "Ann", reason: "all green" });
  await run.reject("checked", new Error("no"), { key: "ann", by: "Ann" });
  await run.resolve("checked", { ok: true });
  await using client = await createClient({
    store: "sqlite::memory:",
    definitions: [bare],
    redact: false,
  });
  try {
    await client.get(bare, "x").result();
  } catch (error) {
    if (error instanceof CancelledError) console.log(error.message);
    else if (error instanceof RepriseError) console.log(error.code, error.family, error.cause, durations, codes);
  }
}

// ── API.md, program 4: a cart driven by signals ──

interface Item {
  sku: string;
  qty: number;
}
export const cart = workflow(
  "cart",
  { ports: { add: signal<Item>(), checkout: signal(), note: signal(z.string()) } },
  async (ctx) => {
    const items: Item[] = [];
    const one = await ctx.receive("add");
    same<typeof one, Item>();
    const timed = await ctx.receive("add", { timeout: "1 day" });
    same<typeof timed, Item | undefined>();
    const bare = await ctx.receive("checkout", { timeout: "1 day" });
    same<typeof bare, true | undefined>();
    const either = await ctx.receive(["add", "note"]);
    same<
      typeof either,
      { readonly name: "add"; readonly value: Item } | { readonly name: "note"; readonly value: string }
    >();
    for (;;) {
      const message = await ctx.receive(["add", "checkout"], { timeout: "1 day" });
      if (!message) return { status: "abandoned" as const };
      if (message.name === "checkout") return { status: "bought" as const, items };
      items.push(message.value);
    }
  },
);
export async function shopping(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [cart] });
  const run = await engine.start(cart);
  await run.signal("add", { sku: "a", qty: 2 });
  await run.signal("add", { sku: "a", qty: 2 }, { dedupId: "click-1" });
  await run.signal("checkout");
  await run.signal("checkout", undefined, { dedupId: "click-2" });
  await engine.get(cart, "cart-8").signal("checkout", undefined, { beforeStart: true });
  await engine.start(cart, undefined, { signals: { add: { sku: "a", qty: 1 }, checkout: undefined } });
  await engine.start("cart", undefined, { id: "cart-9", signals: { note: "hi" } });
}
// ── changing code, and the guard ──

export const changed = workflow("changed", async (ctx) => {
  const answer: boolean = ctx.patched("second thoughts");
  same<ReturnType<typeof ctx.patched>, boolean>();
  return answer ? ctx.task(charge, { id: "7", cents: 1 }) : undefined;
});
export const guarded = () => createEngine({ store: "sqlite::memory:", definitions: [changed, charge], guard: "warn" });

export async function schedules(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [child, bare] });
  const timing: ScheduleOptions = { cron: "0 9 * * *", timeZone: "Europe/Berlin", overlap: "queue", catchUp: "all" };
  const daily: ScheduleHandle = await engine.schedule("daily", child, { n: "7" }, timing);
  await engine.schedule("hourly", bare, undefined, { every: "1 hour", jitter: "5 minutes", overlap: "allow" });
  await engine.schedule("by-name", "child", { n: "7" }, { every: 5_000, catchUp: "none" });
  const info: ScheduleInfo = await daily.info();
  same<typeof info.nextAt, Date | undefined>();
  const run: RunInfo = await daily.trigger();
  const { count } = await daily.backfill(new Date(0), new Date(run.createdAt));
  await daily.pause();
  await daily.resume();
  const hourly: ScheduleInfo | undefined = await engine.findSchedule("hourly");
  if (hourly !== undefined) await engine.getSchedule(hourly.name).remove();
  for await (const { name, paused, waiting, lastRun } of engine.listSchedules())
    console.log(name, paused, waiting.length, lastRun, count);
}

export const loops = workflow(
  "loops",
  { version: 2, input: z.object({ n: z.coerce.number() }) },
  async (ctx, { n }) => {
    if (n > 0) return ctx.continueAsNew({ n: "1" }, { version: 3 });
    return "done";
  },
);
same<OutputOf<typeof loops>, string>();
export const pauses = workflow("pauses", async (ctx): Promise<void> => {
  await ctx.sleep("1 day");
  return ctx.continueAsNew();
});
export async function generations(run: Run<typeof loops>): Promise<void> {
  const { generation, version }: RunInfo = await run.info();
  for await (const { type } of run.journal({ generation, after: version })) console.log(type);
  await run.verify({ generation: 0 });
}

const bank = workflow(
  "bank",
  {
    ports: {
      withdraw: update<number, { left: number }>(),
      close: update(z.object({ by: z.string() })),
      left: query<number>(),
      find: query<string, Date>(),
    },
  },
  async (ctx) => {
    let left = 5;
    ctx.onQuery("left", () => left);
    ctx.onQuery("find", (at) => at.toISOString());
    ctx.onUpdate("withdraw", async (n) => {
      same<typeof n, number>();
      await ctx.sleep(1);
      return { left: (left -= n) };
    });
    ctx.onUpdate("close", ({ by }) => void by);
    const child = ctx.child(cart);
    await child.signal("add", { sku: "a", qty: 1 });
    await child.signal("checkout");
    await child.cancel();
  },
);
export async function banking(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [bank, cart] });
  const run = await engine.start(bank);
  const left = await run.query("left");
  same<typeof left, number>();
  const found = await run.query("find", new Date());
  same<typeof found, string>();
  const answer = await run.update("withdraw", 5, { dedupId: "1" });
  same<typeof answer, { left: number }>();
  await run.update("close", { by: "Eve" });
}
export const limited = () =>
  createEngine({ store: "sqlite::memory:", definitions: [loops], limits: { entries: 5_000 } });
