// What must not compile. Each line is wrong in one way; `tsc` complains when it is accepted. Checked, never run.

import {
  aesGcm,
  createEngine,
  promise,
  queue,
  query,
  rekey,
  signal,
  task,
  update,
  workflow,
  type Duration,
  type Engine,
  type ErrorCode,
  type Run,
} from "reprise";
import { crashEverywhere, createTestEngine, expectReplay, stub } from "reprise/testing";
import { z } from "zod";

interface Order {
  id: string;
  cents: number;
}
const charge = task("charge", (_ctx, order: Order) => ({ paid: order.cents }));
const ping = task("ping", () => "pong");
const strict = task("strict", { input: z.object({ n: z.number() }) }, (_ctx, { n }) => n);
const bare = workflow("bare", async () => 1);
const checkout = workflow(
  "checkout",
  { ports: { approval: promise<{ ok: boolean }>(), bare: promise() } },
  async (ctx, order: Order) => ctx.task(charge, order),
);
declare const engine: Engine<typeof checkout | typeof bare>;
declare const run: Run<typeof checkout>;

// ── starting ──

// @ts-expect-error the input is missing
void engine.start(checkout);
// @ts-expect-error a field of the input is missing
void engine.start(checkout, { id: "7" });
// @ts-expect-error a field of the input has the wrong type
void engine.start(checkout, { id: "7", cents: "990" });
// @ts-expect-error a field too many
void engine.start(checkout, { id: "7", cents: 1, extra: true });
// @ts-expect-error this one takes no input
void engine.start(bare, 5);
// @ts-expect-error no definition has this name
void engine.start("chekcout", { id: "7", cents: 1 });
// @ts-expect-error by its name it takes the same input
void engine.start("checkout", { id: 7, cents: 1 });
// @ts-expect-error a definition this engine does not have
void engine.start(workflow("other", async () => 1));
// @ts-expect-error a task is not a definition
void engine.start(charge, { id: "7", cents: 1 });
// @ts-expect-error an id is text
void engine.start(checkout, { id: "7", cents: 1 }, { id: 7 });
// @ts-expect-error an option that is not there
void engine.start(checkout, { id: "7", cents: 1 }, { key: "x" });
// @ts-expect-error one argument too many
void engine.start(checkout, { id: "7", cents: 1 }, {}, {});

// @ts-expect-error a delay is a duration
void engine.start(checkout, { id: "7", cents: 1 }, { delay: "soon" });
// @ts-expect-error a singleton has a key
void engine.start(checkout, { id: "7", cents: 1 }, { singleton: true });
// @ts-expect-error a debounce says by how much
void engine.start(checkout, { id: "7", cents: 1 }, { debounce: { key: "x" } });

// ── queues ──

// @ts-expect-error a rate says in what time
queue("mail", { rate: { limit: 5 } });
// @ts-expect-error a rate is a record
queue("mail", { rate: 5 });
// @ts-expect-error an option that is not there
queue("mail", { concurency: 5 });
// @ts-expect-error limits per key know no keys of their own
queue("mail", { perKey: { perKey: { concurrency: 1 } } });
// @ts-expect-error a queue is made by queue()
task("t", { queue: "mail" }, () => 1);
// @ts-expect-error a key is text
task("t", { queue: queue("mail"), key: (order: Order) => order.cents }, (_ctx, order: Order) => order.id);
// @ts-expect-error a key is made of the parsed input
task("t", { input: z.object({ n: z.number() }), queue: queue("mail"), key: ({ m }) => String(m) }, () => 1);
// @ts-expect-error a worker's queues are made by queue()
void createEngine({ store: "sqlite::memory:", definitions: [bare], worker: { queues: ["mail"] } });
// @ts-expect-error a label is one name
task("t", { label: ["gpu", "eu"] }, () => 1);
// @ts-expect-error a label is a name
workflow("w", { label: 7 }, async () => 1);
// @ts-expect-error a worker's labels are a list
void createEngine({ store: "sqlite::memory:", definitions: [bare], worker: { labels: "gpu" } });
// @ts-expect-error limits are a record
void engine.getQueue("mail").limit(5);

// ── handles ──

// @ts-expect-error a handle needs an id
engine.get(checkout);
// @ts-expect-error no definition has this name
engine.get("nobody", "order-7");
// @ts-expect-error no port has this name
void run.resolve("aproval", { ok: true });
// @ts-expect-error the payload is missing
void run.resolve("approval");
// @ts-expect-error the payload has the wrong type
void run.resolve("approval", { ok: "yes" });
// @ts-expect-error a key is a text
void run.resolve("approval", { ok: true }, { key: 7 });
// @ts-expect-error a port without payload takes none
void run.resolve("bare", 5);
// @ts-expect-error a rejection is an Error
void run.reject("approval", "no");
// @ts-expect-error not a duration
void run.result({ timeout: "soon" });
// @ts-expect-error the output is known
const wrongOutput: Promise<{ paid: string }> = run.result();
// @ts-expect-error a run of another definition
const wrongRun: Run<typeof bare> = run;
// @ts-expect-error no status has this name
engine.list({ status: "lost" });
// @ts-expect-error a run of `bare` has no ports
void engine.get(bare, "x").resolve("approval", { ok: true });

// ── inside a workflow ──

export const wrong = workflow(
  "wrong",
  { ports: { approval: promise<number>(), bare: promise() } },
  async (ctx, input: Order) => {
    // @ts-expect-error the task's input is missing
    await ctx.task(charge);
    // @ts-expect-error the task's input has the wrong type
    await ctx.task(charge, { id: 5, cents: 1 });
    // @ts-expect-error this task takes no input
    await ctx.task(ping, 5);
    // @ts-expect-error the schema's input type
    await ctx.task(strict, { n: "5" });
    // @ts-expect-error a workflow is not a task
    await ctx.task(bare);
    // @ts-expect-error a function is not a task
    await ctx.task(async () => 1);
    // @ts-expect-error a policy without maxAttempts
    await ctx.task(ping, undefined, { retry: { baseDelay: "1s" } });
    // @ts-expect-error a function is not data
    await ctx.run("function", () => () => 1);
    // @ts-expect-error a Response is not data; read it inside
    await ctx.run("response", () => fetch("https://example.org"));
    // @ts-expect-error a symbol is not data
    await ctx.run("symbol", () => Symbol("x"));
    // @ts-expect-error a stream is not data
    await ctx.run("stream", async () => (await fetch("https://example.org")).body!);
    // @ts-expect-error an operation needs a function
    await ctx.run("nothing");
    // @ts-expect-error an operation needs a name
    await ctx.run(() => 1);
    // @ts-expect-error the function is given the input's type
    await ctx.run("typed", { a: 1 }, (_op, { b }) => b);
    // @ts-expect-error no port has this name
    await ctx.promise("nobody");
    // @ts-expect-error a wait that may run out may give nothing
    const timed: number = await ctx.promise("approval", { timeout: "1 day" });
    // @ts-expect-error a port without payload gives nothing to read
    const got: { ok: boolean } = await ctx.promise("bare");
    // @ts-expect-error the other run has no such promise
    await ctx.resolve(checkout, "order-7", "aproval", { ok: true });
    // @ts-expect-error the promise of the other run has another type
    await ctx.resolve(checkout, "order-7", "approval", { ok: "yes" });
    // @ts-expect-error a rejection is an Error
    await ctx.reject(checkout, "order-7", "approval", "no");
    // @ts-expect-error not a duration
    await ctx.sleep("a while");
    // @ts-expect-error an operation has no entry before its end, so it cannot be canceled
    ctx.run("step", () => 1).cancel();
    // @ts-expect-error a moment is a Date
    await ctx.sleepUntil(5);
    // @ts-expect-error the child's input is missing
    await ctx.child(checkout);
    // @ts-expect-error a task is not a child
    await ctx.child(charge, input);
    // @ts-expect-error an attempt is known to operations and tasks only
    const { attempt } = ctx;
    // @ts-expect-error only functions that touch the world beat
    ctx.heartbeat();
    return [timed, got, attempt];
  },
);

export const typedState = workflow("typed-state", { state: z.object({ count: z.number() }) }, async (ctx) => {
  // @ts-expect-error no such key
  ctx.state.set("cuont", 1);
  // @ts-expect-error the value has the wrong type
  ctx.state.set("count", "1");
  // @ts-expect-error a key may not be set yet
  const count: number = ctx.state.get("count");
  return count;
});

// ── defining ──

// @ts-expect-error a workflow is asynchronous
workflow("sync", () => 1);
// @ts-expect-error a workflow needs a name
workflow(async () => 1);
// @ts-expect-error a port is made by promise()
workflow("ports", { ports: { approval: "promise" } }, async () => 1);
// @ts-expect-error an option that is not there
workflow("option", { retries: 3 }, async () => 1);
// @ts-expect-error a task needs a function
task("nothing", {});
// @ts-expect-error a policy counts attempts
task("policy", { retry: { maxAttempts: "3" } }, () => 1);
// @ts-expect-error not a duration
task("duration", { timeout: "5 fortnights" }, () => 1);
// @ts-expect-error not a duration
const duration: Duration = "5 fortnights";
// @ts-expect-error not a code
const code: ErrorCode = "NO_SUCH_CODE";

// ── schedules ──

// @ts-expect-error the input is missing
void engine.schedule("daily", checkout, undefined, { every: "1 day" });
// @ts-expect-error the input has the wrong type
void engine.schedule("daily", checkout, { id: 7, cents: 1 }, { every: "1 day" });
// @ts-expect-error this one takes no input
void engine.schedule("daily", bare, 5, { every: "1 day" });
// @ts-expect-error no definition has this name
void engine.schedule("daily", "chekcout", { id: "7", cents: 1 }, { every: "1 day" });
// @ts-expect-error a task is not a definition
void engine.schedule("daily", charge, { id: "7", cents: 1 }, { every: "1 day" });
// @ts-expect-error not a duration
void engine.schedule("daily", bare, undefined, { every: "daily" });
// @ts-expect-error no such policy
void engine.schedule("daily", bare, undefined, { every: "1 day", overlap: "wait" });
// @ts-expect-error an option that is not there
void engine.schedule("daily", bare, undefined, { cron: "@daily", timezone: "UTC" });
// @ts-expect-error a schedule may not be there
void engine.findSchedule("daily").then((schedule) => schedule.paused);
// @ts-expect-error times are Dates
void engine.getSchedule("daily").backfill("2026-01-01", "2026-01-02");
// @ts-expect-error a queue may not be there
void engine.findQueue("mail").then((queue) => queue.paused);
// @ts-expect-error facts have no methods
void engine.findSchedule("daily").then((schedule) => schedule?.pause());

// ── engines ──

// @ts-expect-error a store is needed
void createEngine({ definitions: [checkout] });
// @ts-expect-error definitions are needed
void createEngine({ store: "sqlite::memory:" });
// @ts-expect-error a function is not a definition
void createEngine({ store: "sqlite::memory:", definitions: [async () => 1] });
// @ts-expect-error no such durability
void createEngine({ store: "sqlite::memory:", definitions: [checkout], durability: "maybe" });
// @ts-expect-error concurrency is a number
void createEngine({ store: "sqlite::memory:", definitions: [checkout], worker: { concurrency: "many" } });
// @ts-expect-error the current key must be named
aesGcm({ keys: { one: "base64" } });
// @ts-expect-error a key is bytes or text
aesGcm({ keys: { one: 5 }, current: "one" });
// @ts-expect-error secrets are asked for, so that they can be rotated
void createEngine({ store: "sqlite::memory:", definitions: [checkout], redact: { values: ["x"] } });
// @ts-expect-error a name is text or a pattern
void createEngine({ store: "sqlite::memory:", definitions: [checkout], redact: { keys: [5] } });
// @ts-expect-error not a size
void createEngine({ store: "sqlite::memory:", definitions: [checkout], limits: { payload: "1 TB" } });
const bytes = new Uint8Array();
// @ts-expect-error a codec is synchronous
void rekey({ store: "sqlite:x.db", codec: { name: "x", encode: async () => bytes, decode: () => "" } });
// @ts-expect-error a codec decodes too
void rekey({ store: "sqlite:x.db", codec: { name: "x", encode: () => bytes } });

// ── control ──

// @ts-expect-error a deadline is a duration
void engine.start(bare, undefined, { deadline: "tomorrow" });
// @ts-expect-error a deadline is a duration
void workflow("hurried", { deadline: true }, async () => 1);
// @ts-expect-error no such action
void engine.bulk("stop", {});
// @ts-expect-error a filter is needed
void engine.bulk("cancel");
// @ts-expect-error retry takes nothing
void run.retry("please");
// @ts-expect-error a reason is text
void run.terminate(5);

void workflow("control", async (ctx) => {
  // @ts-expect-error a pure operation needs the input that its result depends on
  await ctx.run("now", () => 1, { pure: "1" });
  // @ts-expect-error the version of a pure operation is a text
  await ctx.run("double", 1, (_op, n) => 2 * n, { pure: 1 });
  // @ts-expect-error the undo takes something else than the step's result
  await ctx.task(charge, { id: "7", cents: 1 }, { undo: async (result: string) => result });
  // @ts-expect-error the undo's task takes something else than the step's result
  await ctx.task(charge, { id: "7", cents: 1 }, { undo: charge });
  // @ts-expect-error the undo of an operation is given its result
  await ctx.run("step", () => 5, { undo: async (result) => result.length });
  // @ts-expect-error an undo is a function or a task
  await ctx.run("step", () => 5, { undo: "later" });
  // @ts-expect-error a shield takes a function
  await ctx.shield(ctx.run("step", () => 5));
});

// ── testing ──

// @ts-expect-error the stub's answer has the wrong type
stub(charge, () => ({ paid: "5" }));
// @ts-expect-error the stub is given the task's input
stub(charge, (order) => ({ paid: order.dollars }));
// @ts-expect-error definitions are needed
void createTestEngine({});
// @ts-expect-error the workflow's input has the wrong type
void crashEverywhere(checkout, { id: "7" });
// @ts-expect-error definitions are needed
void expectReplay("golden.json");
void createTestEngine({ definitions: [checkout, charge] }).then(async (made) => {
  // @ts-expect-error not a duration
  await made.clock.advance("tomorrow");
  // @ts-expect-error a task cannot be started
  await made.start("charge", { id: "7", cents: 1 });
});

export { wrongOutput, wrongRun, duration, code };

// ── signals ──

const cart = workflow("cart", { ports: { add: signal<Order>(), checkout: signal(), go: promise() } }, async (ctx) => {
  // @ts-expect-error no signal has this name
  await ctx.receive("ad");
  // @ts-expect-error one of them is not a signal
  await ctx.receive(["add", "go"]);
  // @ts-expect-error a timeout is a duration
  await ctx.receive("add", { timeout: "soon" });
  // @ts-expect-error a signal is not awaited as a promise
  await ctx.promise("add");
  const timed = await ctx.receive("add", { timeout: "1 day" });
  // @ts-expect-error it may have run out
  return timed.cents;
});
declare const shopping: Run<typeof cart>;
// @ts-expect-error no signal has this name
void shopping.signal("ad", { id: "7", cents: 1 });
// @ts-expect-error the payload is missing
void shopping.signal("add");
// @ts-expect-error the payload has the wrong type
void shopping.signal("add", { id: 7 });
// @ts-expect-error this one carries nothing
void shopping.signal("checkout", 5);
// @ts-expect-error a promise takes no signals
void shopping.signal("go");
// @ts-expect-error an option that is not there
void shopping.signal("add", { id: "7", cents: 1 }, { dedup: "x" });
// ── changing code, and the guard ──

void workflow("changed", async (ctx) => {
  // @ts-expect-error a patch has a name
  ctx.patched();
  // @ts-expect-error its name is text
  ctx.patched(7);
  // @ts-expect-error it answers at once, with yes or no
  const answer: string = ctx.patched("x");
  return answer;
});
// @ts-expect-error the guard knows no such mode
void createEngine({ store: "sqlite::memory:", definitions: [bare], guard: "loud" });
declare const shop: Engine<typeof cart>;
// @ts-expect-error no signal has this name
void shop.start(cart, undefined, { signals: { ad: { id: "7", cents: 1 } } });
// @ts-expect-error the signal carries something else
void shop.start(cart, undefined, { signals: { add: 5 } });
// @ts-expect-error a promise is not a signal
void shop.start(cart, undefined, { signals: { go: undefined } });
// @ts-expect-error only true or false
void shopping.resolve("go", undefined, { beforeStart: 1 });
// @ts-expect-error a signal has no key
void shopping.signal("add", "a", { key: "ann" });
void workflow("loops", async (ctx, n: number): Promise<string> => {
  // @ts-expect-error the next generation takes the same input
  if (n === 0) return ctx.continueAsNew("one");
  // @ts-expect-error the input is missing
  if (n === 1) return ctx.continueAsNew();
  // @ts-expect-error a version is a number
  return ctx.continueAsNew(2, { version: "2" });
});
// @ts-expect-error a generation is a number
void run.journal({ generation: "newest" });

// ── queries and updates ──

const bank = workflow("bank", { ports: { draw: update<number, number>(), left: query<number>() } }, async (ctx) => {
  // @ts-expect-error a query answers at once
  ctx.onQuery("left", async () => 1);
  // @ts-expect-error it answers with something else
  ctx.onQuery("left", () => "1");
  // @ts-expect-error an update is not a query
  ctx.onQuery("draw", () => 1);
  // @ts-expect-error it is asked with something else
  ctx.onUpdate("draw", (n: string) => n.length);
  // @ts-expect-error it answers with something else
  ctx.onUpdate("draw", () => "1");
  const child = ctx.child(cart);
  // @ts-expect-error the child takes no such signal
  await child.signal("ad", 1);
  // @ts-expect-error the payload is missing
  await child.signal("add");
});
declare const banking: Run<typeof bank>;
// @ts-expect-error what it is asked with is missing
void banking.update("draw");
// @ts-expect-error an option that is not there
void banking.update("draw", 1, { dedup: "x" });
// @ts-expect-error a query takes none
void banking.query("left", 5);
// @ts-expect-error an update is not a query
void banking.query("draw");
// @ts-expect-error how many entries is a number
void createEngine({ store: "sqlite::memory:", definitions: [bare], limits: { entries: "many" } });
