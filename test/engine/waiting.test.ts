// ACCEPTANCE 34, 39 and 42: waiting, waking up, and the values the code receives.

import { expect, test } from "vitest";
import { promise, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, storeAround, until, type AnyWrite } from "./world.ts";

function createSaga() {
  const calls: string[] = [];
  const charge = task("charge", (_ctx, cents: number) => {
    calls.push("charge");
    return { paid: cents };
  });
  const refund = task("refund", (_ctx, payment: { paid: number }) => {
    calls.push("refund");
    return payment.paid;
  });
  const ship = task("ship", () => {
    calls.push("ship");
    return "shipped";
  });
  const saga = workflow("saga", { ports: { approval: promise<{ ok: boolean }>() } }, async (ctx, cents: number) => {
    const payment = await ctx.task(charge, cents);
    try {
      const approval = await ctx.promise("approval", { timeout: "2 days" });
      if (approval === undefined) throw new Error("no answer");
      if (!approval.ok) throw new Error("refused");
      return await ctx.task(ship);
    } catch (error) {
      await ctx.task(refund, payment);
      return (error as Error).message;
    }
  });
  return { calls, saga, definitions: [saga, charge, refund, ship] as const };
}

test("ACCEPTANCE 34: waiting for an approval does not enter the catch, through crashes and 47 hours", async () => {
  const { calls, saga, definitions } = createSaga();
  await using engine = await createTestEngine({ definitions });
  const run = await engine.start(saga, 990);
  for (let hour = 0; hour < 47; hour += 1) {
    await engine.clock.advance("1 hour");
    if (hour % 10 === 0) await engine.crash();
  }
  expect(calls).toEqual(["charge"]);
  expect((await run.info()).status).toBe("waiting");
  await run.resolve("approval", { ok: true });
  expect(await run.result()).toBe("shipped");
  expect(calls).toEqual(["charge", "ship"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("ACCEPTANCE 34: an approval that times out after two days is `undefined`, and the saga compensates once", async () => {
  const { calls, saga, definitions } = createSaga();
  await using engine = await createTestEngine({ definitions });
  const run = await engine.start(saga, 990);
  await engine.clock.advance("47 hours");
  await engine.crash();
  await engine.clock.advance("1 hour");
  expect(await run.result()).toBe("no answer");
  expect(calls).toEqual(["charge", "refund"]);
});

test("ACCEPTANCE 34: a rejected and a refused approval enter the catch", async () => {
  const { calls, saga, definitions } = createSaga();
  await using engine = await createTestEngine({ definitions });
  const refused = await engine.start(saga, 1);
  await refused.resolve("approval", { ok: false });
  expect(await refused.result()).toBe("refused");
  const rejected = await engine.start(saga, 2);
  await rejected.reject("approval", new RangeError("fraud"));
  expect(await rejected.result()).toBe("fraud");
  expect(calls).toEqual(["charge", "refund", "charge", "refund"]);
});

const VALUES = {
  date: new Date("2030-02-03T04:05:06.789Z"),
  map: new Map<unknown, unknown>([
    ["a", 1],
    [{ key: true }, new Set([1, "2"])],
  ]),
  set: new Set([1n, "x", null]),
  bigint: 123_456_789_012_345_678_901_234_567_890n,
  bytes: new Uint8Array([0, 127, 255]),
  absent: undefined,
  negativeZero: -0,
  notANumber: Number.NaN,
  infinite: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  error: new TypeError("bad", { cause: new RangeError("worse") }),
  text: 'é \u0000 😀 \\ "',
  nested: [[], {}, [[{ deep: [null, true, false] }]]],
};

function expectValues(value: typeof VALUES): void {
  expect(value).toEqual(VALUES);
  expect(Object.keys(value).sort()).toEqual(Object.keys(VALUES).sort());
  expect(value).not.toBe(VALUES);
  expect(Object.is(value.negativeZero, -0)).toBe(true);
  expect(value.date).toBeInstanceOf(Date);
  expect([...value.map.keys()][0]).toBe("a");
  expect(value.bytes).toBeInstanceOf(Uint8Array);
  expect(value.error).toBeInstanceOf(TypeError);
  expect(value.error.cause).toBeInstanceOf(RangeError);
}

test("ACCEPTANCE 39: every kind of value is the same live, after a crash, in a replay and in the result", async () => {
  const echo = task("echo", (_ctx, value: typeof VALUES) => {
    expectValues(value);
    return VALUES;
  });
  const seen: (typeof VALUES)[] = [];
  const values = workflow(
    "values",
    { ports: { given: promise<typeof VALUES>() } },
    async (ctx, input: typeof VALUES) => {
      const fromTask = await ctx.task(echo, input);
      const fromOperation = await ctx.run("operation", input, (_op, value) => {
        expectValues(value);
        return VALUES;
      });
      const thrown = await ctx
        .run("fails", () => Promise.reject(VALUES.error))
        .catch((error: unknown) => error as TypeError);
      ctx.state.set("kept", VALUES);
      const given = await ctx.promise("given");
      seen.push(input, fromTask, fromOperation, given, ctx.state.get("kept") as typeof VALUES, {
        ...given,
        error: thrown,
      });
      return given;
    },
  );
  await using engine = await createTestEngine({ definitions: [values, echo] });
  const run = await engine.start(values, VALUES);
  await run.resolve("given", VALUES);
  expectValues(await run.result());
  expect(await run.verify()).toMatchObject({ status: "same" });
  await engine.crash();
  expect(await run.verify()).toMatchObject({ status: "same" });
  expectValues(await run.result());
  expect(seen).toHaveLength(18);
  for (const value of seen) expectValues(value);
});

test("ACCEPTANCE 39: the code receives the recorded value, not the object that the function keeps and mutates", async () => {
  const kept = { count: 1 };
  const live = workflow("live", async (ctx) => {
    const got = await ctx.run("get", () => kept);
    kept.count += 1;
    return { got, same: got === kept };
  });
  await using engine = await createTestEngine({ definitions: [live] });
  const run = await engine.start(live);
  expect(await run.result()).toEqual({ got: { count: 1 }, same: false });
});

const waiter = workflow("waiter", { ports: { go: promise<number>() } }, async (ctx, held: boolean) => {
  const operation = held ? ctx.run("hold", () => hold.wait()) : ctx.run("quick", () => 0);
  const got = await ctx.promise("go");
  await operation;
  return got;
});
let hold = createGate<number>();

test("ACCEPTANCE 42: an arrival while the turn is held wakes the run", async () => {
  hold = createGate();
  await using engine = await createTestEngine({ definitions: [waiter] });
  const run = await engine.start(waiter, true);
  await hold.reached;
  await run.resolve("go", 7);
  hold.open(0);
  expect(await run.result()).toBe(7);
});

function isOfRun(writes: readonly AnyWrite[]): boolean {
  return writes.some(({ write }) => write === "start" || write === "turn");
}

function endsTurn(writes: readonly AnyWrite[]): boolean {
  return writes.some((write) => write.write === "turn" && write.then === "release");
}

test("ACCEPTANCE 42: an arrival in the same batch as the end of the turn wakes the run", async () => {
  let together = 0;
  for (let turns = 0; turns < 5; turns += 1) {
    let resolved: Promise<void> | undefined;
    let resolve: (() => Promise<void>) | undefined = undefined as (() => Promise<void>) | undefined;
    let batch = 0;
    const source = storeAround(async (writes, apply) => {
      const outcomes = await apply();
      // A message sent while a batch of the run is in flight is written with the run's next commit. Polls are not counted,
      // because their number depends on the store.
      if (resolve !== undefined && isOfRun(writes) && batch++ === turns) resolved ??= resolve();
      if (endsTurn(writes) && writes.some(({ write }) => write === "message")) together += 1;
      return outcomes;
    });
    await using engine = await createTestEngine({ definitions: [waiter], store: source });
    const started = engine.start(waiter, false, { id: "run-1" });
    resolve = () => engine.get(waiter, "run-1").resolve("go", turns);
    const run = await started;
    await engine.clock.advance(0);
    await (resolved ??= resolve());
    expect(await run.result()).toBe(turns);
  }
  expect(together).toBeGreaterThan(0);
});

test("ACCEPTANCE 42: an arrival while the holder's last commit is in flight wakes the run", async () => {
  const inFlight = createGate();
  const source = storeAround(async (writes, apply) => {
    if (endsTurn(writes) && !arrived) {
      arrived = true;
      // Another connection commits first.
      const arrival = { type: "PromiseResolved", target: "go", data: '{"promiseId":"go","value":5}' } as const;
      await source.store.write([{ write: "message", to: "run-1", arrival, once: true }]);
      inFlight.open();
    }
    return apply();
  });
  let arrived = false;
  await using engine = await createTestEngine({ definitions: [waiter], store: source });
  const run = await engine.start(waiter, false, { id: "run-1" });
  await inFlight.opened;
  expect(await run.result()).toBe(5);
});

test("ACCEPTANCE 42: an arrival during a replay is delivered at once, not when the run's operation ends", async () => {
  let resolved: Promise<void> | undefined;
  let armed = false;
  const source = storeAround(async (writes, apply) => {
    const outcomes = await apply();
    const claimed = writes.some(
      ({ write }, index) => write === "claim-turns" && (outcomes[index] as unknown[]).length > 0,
    );
    if (!armed || !claimed) return outcomes;
    // The next process may claim the run before the first one has reported its start to the test.
    await until(() => engine.find("run-1").then(Boolean, () => false));
    resolved ??= engine.get(opener, "run-1").resolve("go", 3);
    return outcomes;
  });
  const gate = createGate();
  const opener = workflow("opener", { ports: { go: promise<number>() } }, async (ctx) => {
    const held = ctx.run("hold", () => gate.wait());
    const got = await ctx.promise("go");
    gate.open();
    await held;
    return got;
  });
  await using engine = await createTestEngine({ definitions: [opener], store: source });
  const run = await engine.start(opener, undefined, { id: "run-1" });
  await gate.reached;
  armed = true;
  await engine.crash();
  await resolved;
  expect(resolved).toBeDefined();
  expect(await run.result()).toBe(3);
});
