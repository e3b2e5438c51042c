// ACCEPTANCE 37: a workflow that crashes at any commit and is resumed has the same output.

import { expect, test } from "vitest";
import { FatalError, promise, task, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";
import { storeAround } from "./world.ts";

const charge = task("charge", { retry: { maxAttempts: 3 } }, (_ctx, cents: number) => ({ paid: cents }));
const refund = task("refund", (_ctx, payment: { paid: number }) => ({ refunded: payment.paid }));
const double = task("double", (_ctx, n: number) => 2 * n);

const order = workflow(
  "order",
  { ports: { approval: promise<{ ok: boolean }>() } },
  async (ctx, input: { cents: number }) => {
    const payment = await ctx.task(charge, input.cents);
    try {
      const approval = await ctx.promise("approval", { timeout: "2 days" });
      if (!approval?.ok) throw new FatalError("not approved");
      const label = await ctx.run("print label", () => `label ${payment.paid}`);
      return { payment, label };
    } catch (error) {
      const { refunded } = await ctx.task(refund, payment);
      return { refunded, because: (error as Error).message };
    }
  },
);

test("ACCEPTANCE 37: an approved order is paid and shipped, wherever it crashes", async () => {
  const { output, crashes } = await crashEverywhere(
    order,
    { cents: 990 },
    { definitions: [charge, refund], drive: (engine, id) => engine.get(order, id).resolve("approval", { ok: true }) },
  );
  expect(output).toEqual({ payment: { paid: 990 }, label: "label 990" });
  expect(crashes).toBeGreaterThanOrEqual(8);
});

test("ACCEPTANCE 37: an order that is not approved in two days is refunded, wherever it crashes", async () => {
  const { output } = await crashEverywhere(order, { cents: 990 }, { definitions: [charge, refund] });
  expect(output).toEqual({ refunded: 990, because: "not approved" });
});

test("ACCEPTANCE 37: a refused order is refunded, wherever it crashes", async () => {
  const drive = (
    engine: { get(what: typeof order, id: string): { reject(name: "approval", error: Error): Promise<void> } },
    id: string,
  ) => engine.get(order, id).reject("approval", new Error("fraud"));
  const { output } = await crashEverywhere(order, { cents: 5 }, { definitions: [charge, refund], drive });
  expect(output).toEqual({ refunded: 5, because: "fraud" });
});

test("ACCEPTANCE 37: a fan-out of tasks, operations and timers", async () => {
  const fanOut = workflow("fan-out", async (ctx, width: number) => {
    const numbers = Array.from({ length: width }, (_, index) => index);
    const doubled = await Promise.all(numbers.map((n) => ctx.task(double, n)));
    const [squares, times] = await Promise.all([
      Promise.all(numbers.map((n) => ctx.run("square", n, (_op, m) => m * m))),
      Promise.all(numbers.map(async (n) => (await ctx.sleep(n * 1_000), ctx.now().getTime()))),
    ]);
    return { doubled, squares, waited: times.map((at) => at - (times[0] ?? 0)) };
  });
  const { output } = await crashEverywhere(fanOut, 4, { definitions: [double] });
  expect(output).toEqual({ doubled: [0, 2, 4, 6], squares: [0, 1, 4, 9], waited: [0, 1_000, 2_000, 3_000] });
});

test("ACCEPTANCE 37: a task and an operation that fail before they succeed", async () => {
  const flaky = task("flaky", { retry: { maxAttempts: 4, baseDelay: "10s" } }, ({ attempt }) => {
    if (attempt < 3) throw new Error(`attempt ${attempt}`);
    return attempt;
  });
  const stubborn = workflow("stubborn", async (ctx) => {
    const operation = await ctx.run(
      "operation",
      ({ attempt }) => {
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
        return attempt;
      },
      { retry: { maxAttempts: 3, baseDelay: "1 minute" } },
    );
    const failed = await ctx
      .run("hopeless", () => Promise.reject(new TypeError("no")), { retry: { maxAttempts: 2 } })
      .catch((error: unknown) => (error as RepriseError).code);
    return { operation, failed, task: await ctx.task(flaky) };
  });
  const { output } = await crashEverywhere(stubborn, undefined, { definitions: [flaky] });
  expect(output).toEqual({ operation: 3, failed: "MAX_ATTEMPTS_EXCEEDED", task: 3 });
});

test("ACCEPTANCE 37: thirty days of sleep", async () => {
  const trial = workflow("trial", async (ctx, user: string) => {
    const from = ctx.now().getTime();
    await ctx.sleep("30 days");
    const sent = await ctx.run("remind", user, (_op, to) => `sent to ${to}`);
    return { sent, days: (ctx.now().getTime() - from) / 86_400_000 };
  });
  const { output } = await crashEverywhere(trial, "ann", { stubs: [stub("remind", (to) => `stub for ${String(to)}`)] });
  expect(output).toEqual({ sent: "stub for ann", days: 30 });
});

test("ACCEPTANCE 37: children, one of which fails", async () => {
  const grandchild = workflow("grandchild", async (ctx, n: number) => ctx.run("add", () => n + 1));
  const child = workflow("child", async (ctx, n: number) => {
    if (n < 0) throw new RangeError("negative");
    return (await ctx.task(double, n)) + (await ctx.child(grandchild, n));
  });
  const parent = workflow("parent", async (ctx, n: number) => {
    const one = ctx.child(child, n, { id: "named-child" });
    const bad = await ctx.child(child, -1).catch((error: unknown) => (error as Error).message);
    return { one: await one, bad, id: one.id };
  });
  const { output } = await crashEverywhere(parent, 3, { definitions: [child, grandchild, double] });
  expect(output).toEqual({ one: 10, bad: "negative", id: "named-child" });
});

test("ACCEPTANCE 37: races whose losers finish later", async () => {
  const races = workflow("races", async (ctx) => {
    const slow = ctx.sleep("1 hour").then(() => "slow");
    const quick = await Promise.race([
      slow,
      ctx.sleep("1 minute").then(() => "quick"),
      ctx.sleep("1 day").then(() => "never"),
    ]);
    const any = await Promise.any([ctx.run("bad", () => Promise.reject(new Error("x"))), ctx.task(double, 4)]);
    const settled = await Promise.allSettled([
      ctx.task(double, 1),
      ctx.run("fails", () => Promise.reject(new Error("y"))),
    ]);
    return { quick, any, settled: settled.map(({ status }) => status), slow: await slow };
  });
  const { output } = await crashEverywhere(races, undefined, { definitions: [double] });
  expect(output).toEqual({ quick: "quick", any: 8, settled: ["fulfilled", "rejected"], slow: "slow" });
});

test("ACCEPTANCE 37: state, random numbers, and cancelled timers", async () => {
  const keeper = workflow("keeper", async (ctx) => {
    ctx.state.set("count", 1);
    const atOnce = ctx.sleep("1 day");
    atOnce.cancel();
    const first = await atOnce.catch((error: unknown) => (error as RepriseError).code);
    const later = ctx.sleep("1 day");
    const drawn = [ctx.random(), ctx.uuid()];
    await ctx.run("step", () => 1);
    later.cancel();
    ctx.state.set("count", (ctx.state.get("count") as number) + 1);
    ctx.state.set("gone", true);
    ctx.state.clear("gone");
    const second = await later.catch((error: unknown) => (error as RepriseError).code);
    return { first, second, count: ctx.state.get("count"), keys: ctx.state.keys(), drawn };
  });
  const { output } = await crashEverywhere(keeper, undefined);
  expect(output).toMatchObject({ first: "CANCELLED", second: "CANCELLED", count: 2, keys: ["count"] });
});

test("ACCEPTANCE 37: a promise resolved early, and one that times out", async () => {
  const two = workflow(
    "two",
    { ports: { early: promise<number>(), late: promise<number>(), bare: promise() } },
    async (ctx) => {
      const late = await ctx.promise("late", { timeout: "1 hour" });
      const bare = await ctx.promise("bare", { timeout: "1 hour" });
      return {
        late,
        bare,
        early: await ctx.promise("early", { timeout: "1 hour" }),
        again: await ctx.promise("early"),
      };
    },
  );
  const { output } = await crashEverywhere(two, undefined, {
    drive: async (engine, id) => {
      await engine.get(two, id).resolve("early", 7);
    },
  });
  expect(output).toEqual({ late: undefined, bare: undefined, early: 7, again: 7 });
});

test("ACCEPTANCE 37: a promise that is the first command, resolved before the code has run", async () => {
  const first = workflow("first", { ports: { go: promise<number>() } }, async (ctx) =>
    ctx.promise("go", { timeout: "1 day" }),
  );
  const { output } = await crashEverywhere(first, undefined, {
    drive: (engine, id) => engine.get(first, id).resolve("go", 4),
  });
  expect(output).toBe(4);
});

test("a timer that is cancelled in the turn that started it leaves no item", async () => {
  const source = storeAround((_writes, apply) => apply());
  const fickle = workflow("fickle", { ports: { go: promise() } }, async (ctx) => {
    ctx.sleep("1 day").cancel();
    await ctx.promise("go");
  });
  await using engine = await createTestEngine({ definitions: [fickle], store: source });
  const run = await engine.start(fickle);
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
});

test("crashEverywhere reports a run that waits for a message that is never sent", async () => {
  const waiting = workflow("waiting", { ports: { approval: promise<number>() } }, async (ctx) =>
    ctx.promise("approval"),
  );
  await expect(crashEverywhere(waiting, undefined)).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining("waits for the promise approval") as string,
  });
});

test("crashEverywhere reports a workflow whose output differs after a crash", async () => {
  let calls = 0;
  const impure = workflow("impure", async (ctx) => {
    await ctx.run("step", () => 1);
    return ++calls;
  });
  await expect(crashEverywhere(impure, undefined)).rejects.toMatchObject({ code: "INVARIANT" });
});
