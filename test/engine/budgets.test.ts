// Budgets: what runs reserve, spend and lose (spending.S1 to spending.S5).

import { describe, expect, test } from "vitest";
import {
  END,
  flow,
  graph,
  last,
  START,
  task,
  typed,
  workflow,
  type BudgetOptions,
  type CallCost,
  type Cost,
  type Run,
} from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { MAX_BUDGET_REQUESTS } from "../../src/kernel/index.ts";
import { collect, createGate, rejection, until, watchEvents } from "./world.ts";

/** A service that charges when it is called, whatever becomes of the answer. */
class Service {
  readonly charged: number[] = [];

  get total(): number {
    return this.charged.reduce((sum, usd) => sum + usd, 0);
  }

  call(usd = 1): { usd: number } {
    this.charged.push(usd);
    return { usd };
  }
}

const cost: CallCost<{ usd: number }> = { reserve: { usd: 1 }, actual: ({ usd }) => ({ usd }) };

async function books(run: Pick<Run<any>, "budget">): Promise<Record<string, Cost>> {
  const { cap, spent, reserved, lost } = (await run.budget())!;
  return { cap, spent, reserved, lost };
}

const usd = (cap: number, spent: number, lost = 0, reserved = 0): object => ({
  cap: { usd: cap },
  spent: { usd: spent },
  lost: { usd: lost },
  reserved: { usd: reserved },
});

async function waitsForBudget(engine: TestEngine, count = 1): Promise<void> {
  await until(async () => (await collect(engine.promises())).filter(({ kind }) => kind === "budget").length === count);
}

/** The answers of a run's budget that no person gave. */
async function wakesOf(run: Pick<Run<any>, "journal">): Promise<readonly unknown[]> {
  return (await collect(run.journal()))
    .flatMap(({ type, data }) => (type === "BudgetRaised" ? [data] : []))
    .filter((data) => "woken" in (data as object));
}

describe("a workflow", () => {
  const calls = (service: Service, budget: BudgetOptions, how: CallCost<{ usd: number }> = cost) =>
    workflow("calls", { budget }, async (ctx, count: number) => {
      let sum = 0;
      for (let n = 0; n < count; n += 1) sum += (await ctx.run("model", () => service.call(0.5), { cost: how })).usd;
      return sum;
    });

  test("spends what its answers cost, and keeps nothing reserved", async () => {
    const service = new Service();
    const ask = calls(service, { usd: 3 });
    await using engine = await createTestEngine({ definitions: [ask] });
    const run = await engine.start(ask, 4);
    expect(await run.result()).toBe(2);
    expect(await books(run)).toEqual(usd(3, 2));
    expect(service.total).toBe(2);
  });

  test("without a budget has none, and its costs have no effect", async () => {
    const free = workflow("free", (ctx) => ctx.run("model", () => ({ usd: 5 }), { cost }));
    await using engine = await createTestEngine({ definitions: [free] });
    const run = await engine.start(free);
    await run.result();
    expect(await run.budget()).toBeUndefined();
    expect(await rejection(run.raise({ usd: 1 }))).toMatchObject({ code: "USAGE" });
  });

  test("fails with BUDGET_REACHED before a call that does not fit, and continues after a raise and a retry", async () => {
    const service = new Service();
    const ask = calls(service, { usd: 2, onReached: "fail" });
    await using engine = await createTestEngine({ definitions: [ask] });
    const run = await engine.start(ask, 5);
    const error = await rejection(run.result());
    expect(error.cause).toMatchObject({
      code: "BUDGET_REACHED",
      message:
        "Operation model would reserve $1, but the run's budget of $2 is reached: $1.5 spent, $0 reserved, $0 lost. Raise it with run.raise({ usd: … }) or `reprise raise " +
        `${run.id} --usd …\`, then \`reprise retry ${run.id}\`.`,
    });
    expect(service.total).toBe(1.5);
    await run.raise({ usd: 1 });
    await run.retry();
    expect(await run.result()).toBe(2.5);
    expect(await books(run)).toEqual(usd(3, 2.5));
  });

  test("asks: the call waits as an open promise, releases its turn, and continues after a raise", async () => {
    const service = new Service();
    const ask = calls(service, { usd: 1 });
    const now = new Date("2030-01-01T00:00:00Z");
    await using engine = await createTestEngine({ definitions: [ask], now });
    const run = await engine.start(ask, 2, { id: "agent-1" });
    await waitsForBudget(engine);
    await until(async () => (await run.info()).status === "waiting");
    expect(await collect(engine.promises())).toEqual([
      {
        runId: "agent-1",
        definition: "calls",
        kind: "budget",
        name: "budget",
        key: "Operation(1)",
        show: { cap: { usd: 1 }, reserve: { usd: 1 }, spent: { usd: 0.5 }, reserved: { usd: 0 }, lost: { usd: 0 } },
        createdAt: now,
        cursor: expect.any(String) as string,
      },
    ]);
    expect((await run.budget())!.waiting).toEqual([
      { run: "agent-1", command: "Operation(1)", reserve: { usd: 1 }, since: now },
    ]);
    await run.raise({ usd: 0.25 }, { by: "ann", reason: "too little" });
    await engine.clock.advance("1 second");
    await waitsForBudget(engine);
    await engine.crash();
    await run.raise({ usd: 0.25 });
    expect(await run.result()).toBe(1);
    expect(await collect(engine.promises())).toEqual([]);
    expect(await books(run)).toEqual(usd(1.5, 1));
    const raised = (await collect(run.journal())).filter(({ type }) => type === "BudgetRaised");
    expect(raised.map(({ data }) => data)).toEqual([
      { add: { usd: 0.25 }, by: "ann", reason: "too little" },
      { add: { usd: 0.25 } },
    ]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("whose request is declined throws BUDGET_REACHED into the code, which may go on", async () => {
    const service = new Service();
    const careful = workflow("careful", { budget: { usd: 1 } }, async (ctx) => {
      try {
        return await ctx.run("model", () => service.call(), { cost: { ...cost, reserve: { usd: 2 } } });
      } catch (error) {
        return { usd: 0, code: (error as { code: string }).code };
      }
    });
    await using engine = await createTestEngine({ definitions: [careful] });
    const run = await engine.start(careful);
    await waitsForBudget(engine);
    await run.declineBudget({ by: "ann", reason: "enough" });
    expect(await run.result()).toEqual({ usd: 0, code: "BUDGET_REACHED" });
    expect(await collect(engine.promises())).toEqual([]);
    expect(service.charged).toEqual([]);
    expect(await rejection(run.declineBudget())).toMatchObject({ code: "USAGE" });
  });

  test("asks no person for a call that fits as soon as the calls before it have ended", async () => {
    const started: string[] = [];
    const gates = { a: createGate(), b: createGate() };
    const upper: CallCost<{ usd: number }> = { ...cost, reserve: { usd: 3 } };
    const both = workflow("both", { budget: { usd: 4 } }, async (ctx) => {
      const call = (name: "a" | "b") => async () => (started.push(name), await gates[name].wait(), { usd: 0.5 });
      await Promise.all([ctx.run("a", call("a"), { cost: upper }), ctx.run("b", call("b"), { cost: upper })]);
      return "done";
    });
    await using engine = await createTestEngine({ definitions: [both] });
    const run = await engine.start(both);
    await gates.a.reached;
    await waitsForBudget(engine);
    await engine.clock.advance("1 minute");
    expect(started).toEqual(["a"]);
    gates.a.open();
    gates.b.open();
    await engine.clock.advance("10 seconds");
    expect(await run.result()).toBe("done");
    expect(await collect(engine.promises())).toEqual([]);
    expect(await books(run)).toEqual(usd(4, 1));
    expect(await wakesOf(run)).toEqual([{ woken: ["Operation(1)"] }]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("tries again only the calls that have room, so each call is refused once", async () => {
    using observed = watchEvents();
    const gate = createGate();
    const many = workflow("many", { budget: { usd: 2.5 } }, async (ctx) => {
      const call = async () => (await gate.wait(), { usd: 0.01 });
      await Promise.all(Array.from({ length: 10 }, (_, n) => ctx.run(`call ${n}`, call, { cost })));
    });
    await using engine = await createTestEngine({ definitions: [many] });
    const run = await engine.start(many);
    await waitsForBudget(engine, 8);
    gate.open();
    await engine.clock.advance("1 minute");
    await run.result();
    const refused = observed.events.flatMap((event) => (event.event === "budget.reached" ? [event.step] : []));
    expect(refused).toEqual([2, 3, 4, 5, 6, 7, 8, 9].map((n) => `Operation(${n})`));
    expect(await wakesOf(run)).toEqual(
      [2, 4, 6, 8].map((n) => ({ woken: [`Operation(${n})`, `Operation(${n + 1})`] })),
    );
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("whose calls were woken before a crash continues, and its refused calls wait again", async () => {
    const gates = [createGate(), createGate(), createGate()];
    const begun: number[] = [];
    const upper: CallCost<{ usd: number }> = { ...cost, reserve: { usd: 3 } };
    const three = workflow("three", { budget: { usd: 8 } }, async (ctx) => {
      const call = (n: number) => async () => (begun.push(n), await gates[n]!.wait(), { usd: 0.5 });
      await Promise.all(
        gates.map((_, n) =>
          ctx.run(`call ${n}`, call(n), { cost: n === 0 ? { ...upper, reserve: { usd: 7 } } : upper }),
        ),
      );
    });
    await using engine = await createTestEngine({ definitions: [three] });
    const run = await engine.start(three);
    await waitsForBudget(engine, 2);
    gates[0]!.open();
    await engine.clock.advance("10 seconds");
    await until(() => begun.length === 3);
    await engine.crash();
    // Both calls may have been paid: what they reserved is lost, and no room is left for another execution of either.
    await waitsForBudget(engine, 2);
    expect(await books(run)).toEqual(usd(8, 0.5, 6));
    await run.raise({ usd: 3 });
    gates[1]!.open();
    gates[2]!.open();
    await engine.clock.advance("10 seconds");
    await run.result();
    expect(await books(run)).toEqual(usd(11, 1.5, 6));
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("that is canceled while it waits for its budget ends, and its request is gone", async () => {
    const ask = calls(new Service(), { usd: 0.5 });
    await using engine = await createTestEngine({ definitions: [ask] });
    const run = await engine.start(ask, 1);
    await waitsForBudget(engine);
    await run.cancel();
    expect(await rejection(run.result())).toMatchObject({ code: "CANCELLED" });
    expect(await collect(engine.promises())).toEqual([]);
  });

  test("loses what an execution reserved whose worker crashed: a crash loop ends in a question that shows it", async () => {
    const service = new Service();
    const gates = Array.from({ length: 3 }, () => createGate());
    const slow = workflow("slow", { budget: { usd: 3 } }, (ctx) =>
      ctx.run(
        "model",
        async () => {
          const answer = service.call();
          await gates[service.charged.length - 1]?.wait();
          return answer;
        },
        { cost },
      ),
    );
    await using engine = await createTestEngine({ definitions: [slow] });
    const run = await engine.start(slow);
    for (const gate of gates) {
      await gate.reached;
      await engine.crash();
    }
    await waitsForBudget(engine);
    expect(service.total).toBe(3);
    expect(await books(run)).toEqual(usd(3, 0, 3));
    const [asked] = await collect(engine.promises());
    expect(asked).toMatchObject({ show: { lost: { usd: 3 } } });
    await run.raise({ usd: 1 });
    expect(await run.result()).toEqual({ usd: 1 });
    expect(await books(run)).toEqual(usd(4, 1, 3));
  });

  test("loses what a failed attempt reserved, unless the failure was not billed", async () => {
    let attempts = 0;
    const unbilled = (error: Error): boolean => error.message.includes("connect");
    const shaky = workflow("shaky", { budget: { usd: 9 } }, (ctx) =>
      ctx.run(
        "model",
        () => {
          attempts += 1;
          if (attempts === 1) throw new Error("cannot connect");
          if (attempts === 2) throw new Error("reset");
          return { usd: 0.5 };
        },
        { cost: { ...cost, unbilled }, retry: { maxAttempts: 3, baseDelay: 1 } },
      ),
    );
    await using engine = await createTestEngine({ definitions: [shaky] });
    const run = await engine.start(shaky);
    await engine.clock.advance("1 minute");
    await run.result();
    expect(await books(run)).toEqual(usd(9, 0.5, 1));
  });

  test("spends a dearer answer in full, logs it, and makes no further call", async () => {
    const warnings: unknown[] = [];
    const logger = {
      info: () => {},
      error: () => {},
      warn: (message: string, data?: object) => void warnings.push([message, data]),
    };
    const service = new Service();
    const dear = workflow("dear", { budget: { usd: 2, onReached: "fail" } }, async (ctx) => {
      await ctx.run("model", () => service.call(5), { cost });
      await ctx.run("model", () => service.call(1), { cost });
    });
    await using engine = await createTestEngine({ definitions: [dear], logger });
    const run = await engine.start(dear, undefined, { id: "dear-1" });
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "BUDGET_REACHED" } });
    expect(service.total).toBe(5);
    expect(await books(run)).toEqual(usd(2, 5));
    expect(warnings).toContainEqual([
      "Operation model cost $5, more than the $1 it had reserved. The difference may pass the budget. Raise `cost.reserve` to an upper bound.",
      expect.objectContaining({ code: "BUDGET_ESTIMATE", run: "dear-1", step: "Operation(0)" }),
    ]);
  });

  test("keeps its budget over generations, and a fork gets its own", async () => {
    const service = new Service();
    const loop = workflow("loop", { budget: { usd: 3 } }, async (ctx, left: number): Promise<number> => {
      await ctx.run("model", () => service.call(0.5), { cost });
      return left === 0 ? 0 : ctx.continueAsNew(left - 1);
    });
    await using engine = await createTestEngine({ definitions: [loop] });
    const run = await engine.start(loop, 2, { budget: { usd: 2 } });
    await run.result();
    expect(await books(run)).toEqual(usd(2, 1.5));
    const fork = await run.fork({ at: "Operation(0)", generation: 0 });
    await fork.result();
    expect(await books(fork)).toEqual(usd(2, 1.5));
    expect(await books(run)).toEqual(usd(2, 1.5));
  });

  test("refuses a budget that cannot hold, before anything is written", async () => {
    const ask = calls(new Service(), { usd: 1 });
    await using engine = await createTestEngine({ definitions: [ask] });
    expect(await rejection(engine.start(ask, 1, { id: "a", budget: {} }))).toMatchObject({ code: "BAD_OPTIONS" });
    expect(await engine.find("a")).toBeUndefined();
    const run = await engine.start(ask, 1);
    expect(await rejection(run.raise({}))).toMatchObject({ code: "BAD_OPTIONS" });
    expect(await rejection(run.raise({ tokens: 5 }))).toMatchObject({ code: "USAGE" });
  });
});

describe("tasks and children", () => {
  test("share the budget of the root: what all of them pay stays within it", async () => {
    const service = new Service();
    const search = task("search", { cost }, () => service.call());
    const kid = workflow("kid", async (ctx) => {
      await ctx.run("model", () => service.call(), { cost });
      return (await ctx.task(search)).usd;
    });
    const parent = workflow("parent", { budget: { usd: 5, onReached: "fail" } }, async (ctx) => {
      const all = await Promise.allSettled(Array.from({ length: 4 }, () => ctx.child(kid)));
      return all.filter(({ status }) => status === "fulfilled").length;
    });
    await using engine = await createTestEngine({ definitions: [parent, kid, search] });
    const run = await engine.start(parent);
    await run.result();
    expect(service.total).toBe(5);
    expect(await books(run)).toEqual(usd(5, 5));
  });

  test("wait for the budget without a worker, oldest first, and continue after a raise", async () => {
    const service = new Service();
    const search = task(
      "search",
      { cost: { reserve: (input: number) => ({ usd: input }), actual: (answer: { usd: number }) => answer } },
      (_ctx, input: number) => service.call(input),
    );
    const parent = workflow("parent", { budget: { usd: 1 } }, async (ctx) => {
      const all = await Promise.all([ctx.task(search, 1), ctx.task(search, 2), ctx.task(search, 3)]);
      return all.map((one) => one.usd);
    });
    await using engine = await createTestEngine({ definitions: [parent, search] });
    const run = await engine.start(parent);
    await waitsForBudget(engine, 2);
    expect(service.charged).toEqual([1]);
    await run.raise({ usd: 2 });
    await until(async () => (await run.budget())!.spent.usd === 3);
    await waitsForBudget(engine, 1);
    await engine.crash();
    await run.raise({ usd: 3 });
    expect(await run.result()).toEqual([1, 2, 3]);
    expect(await books(run)).toEqual(usd(6, 6));
  });

  test("continue without a person when calls of others in the family leave room", async () => {
    const gate = createGate();
    const upper: CallCost<{ usd: number }> = { ...cost, reserve: { usd: 3 } };
    const search = task("search", { cost: upper }, () => ({ usd: 0.5 }));
    const kid = workflow("kid", (ctx) => ctx.run("model", () => ({ usd: 0.5 }), { cost: upper }));
    const parent = workflow("parent", { budget: { usd: 4.5 } }, async (ctx) => {
      const own = ctx.run("own", async () => (await gate.wait(), { usd: 0.5 }), { cost: upper });
      await ctx.run("begun", () => gate.reached);
      const all = await Promise.all([own, ctx.task(search), ctx.child(kid), ctx.child(kid)]);
      return all.length;
    });
    await using engine = await createTestEngine({ definitions: [parent, kid, search] });
    const run = await engine.start(parent);
    await waitsForBudget(engine, 3);
    gate.open();
    await engine.clock.advance("1 minute");
    expect(await run.result()).toBe(4);
    expect(await books(run)).toEqual(usd(4.5, 2));
    expect(await collect(engine.promises())).toEqual([]);
  });

  test("continue all, however many wait", async () => {
    const gate = createGate();
    const count = MAX_BUDGET_REQUESTS + 10;
    const small = task("small", { cost }, () => ({ usd: 0.1 }));
    const parent = workflow("parent", { budget: { usd: count } }, async (ctx) => {
      const large = { ...cost, reserve: { usd: count } };
      const own = ctx.run("own", async () => (await gate.wait(), { usd: 0.1 }), { cost: large });
      await ctx.run("begun", () => gate.reached);
      await Promise.all([own, ...Array.from({ length: count - 1 }, () => ctx.task(small))]);
    });
    await using engine = await createTestEngine({ definitions: [parent, small] });
    const run = await engine.start(parent);
    await waitsForBudget(engine, count - 1);
    gate.open();
    await engine.clock.advance("1 minute");
    await run.result();
    expect(await books(run)).toMatchObject({ spent: { usd: count / 10 }, reserved: { usd: 0 } });
  });

  test("a task whose request is declined fails with BUDGET_REACHED", async () => {
    const search = task("search", { cost, retry: { maxAttempts: 5 } }, () => ({ usd: 1 }));
    const parent = workflow("parent", { budget: { usd: 0 } }, (ctx) => ctx.task(search));
    await using engine = await createTestEngine({ definitions: [parent, search] });
    const run = await engine.start(parent);
    await waitsForBudget(engine);
    await run.declineBudget();
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "BUDGET_REACHED" } });
  });

  test("a child's own budget moves from its parent, and the rest comes back when the child ends", async () => {
    const service = new Service();
    const gate = createGate();
    const kid = workflow("kid", async (ctx) => {
      await ctx.run("model", () => service.call(0.5), { cost });
      await ctx.run("wait", () => gate.wait());
    });
    const parent = workflow("parent", { budget: { usd: 10 } }, async (ctx) => {
      await ctx.child(kid, undefined, { id: "kid-1", budget: { usd: 4 } });
    });
    await using engine = await createTestEngine({ definitions: [parent, kid] });
    const run = await engine.start(parent);
    await gate.reached;
    expect(await books(run)).toEqual(usd(10, 0, 0, 4));
    expect(await books(engine.get(kid, "kid-1"))).toEqual(usd(4, 0.5));
    gate.open();
    await run.result();
    expect(await books(run)).toEqual(usd(10, 0.5));
    expect(await books(engine.get(kid, "kid-1"))).toEqual(usd(0.5, 0.5));
  });

  test("a child's own budget is at most what its parent has left, and a raise of it is the parent's too", async () => {
    const service = new Service();
    const kid = workflow("kid", async (ctx) => {
      for (let n = 0; n < 3; n += 1) await ctx.run("model", () => service.call(), { cost });
    });
    const parent = workflow("parent", { budget: { usd: 2 } }, (ctx) =>
      ctx.child(kid, undefined, { id: "kid-1", budget: { usd: 100 } }),
    );
    await using engine = await createTestEngine({ definitions: [parent, kid] });
    const run = await engine.start(parent);
    await waitsForBudget(engine);
    expect(await books(engine.get(kid, "kid-1"))).toEqual(usd(2, 2));
    await engine.get(kid, "kid-1").raise({ usd: 1 });
    await run.result();
    expect(await books(run)).toEqual(usd(3, 3));
  });

  test("a dimension that a child's budget does not cap stays capped by its parent's", async () => {
    const service = new Service();
    const paid: CallCost = { reserve: { usd: 0.1, calls: 1 }, actual: () => ({ usd: 0.1, calls: 1 }) };
    const kid = workflow("kid", async (ctx) => {
      for (let n = 0; n < 3; n += 1) await ctx.run("model", () => service.call(0.1), { cost: paid });
    });
    const parent = workflow("parent", { budget: { usd: 5, calls: 2, onReached: "fail" } }, (ctx) =>
      ctx.child(kid, undefined, { id: "kid-1", budget: { usd: 1, onReached: "fail" } }),
    );
    await using engine = await createTestEngine({ definitions: [parent, kid] });
    const run = await engine.start(parent);
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "BUDGET_REACHED" } });
    expect(service.charged.length).toBe(2);
    expect(await books(run)).toMatchObject({ spent: { usd: 0.2, calls: 2 } });
  });

  test("a child with the budget none pays from no budget", async () => {
    const service = new Service();
    const kid = workflow("kid", (ctx) => ctx.run("model", () => service.call(50), { cost }));
    const parent = workflow("parent", { budget: { usd: 1 } }, (ctx) => ctx.child(kid, undefined, { budget: "none" }));
    await using engine = await createTestEngine({ definitions: [parent, kid] });
    const run = await engine.start(parent);
    await run.result();
    expect(await books(run)).toEqual(usd(1, 0));
  });

  test("what a run that is terminated had reserved is lost", async () => {
    const gate = createGate();
    const slow = workflow("slow", { budget: { usd: 3 } }, (ctx) =>
      ctx.run("model", async () => (await gate.wait(), { usd: 1 }), { cost }),
    );
    await using engine = await createTestEngine({ definitions: [slow] });
    const run = await engine.start(slow);
    await gate.reached;
    expect(await books(run)).toEqual(usd(3, 0, 0, 1));
    await run.terminate();
    expect(await books(run)).toEqual(usd(3, 0, 1));
    gate.open();
  });
});

test("a node of a graph waits for its budget longer than its timeout, without an attempt that fails", async () => {
  const service = new Service();
  const think = graph("think", { state: { usd: last(0) }, budget: { usd: 1 }, defaultNodeTimeout: "5 seconds" })
    .node("model", async (ctx) => {
      await ctx.run("first", () => service.call(), { cost });
      return { usd: (await ctx.run("second", () => service.call(), { cost })).usd };
    })
    .edge(START, "model")
    .edge("model", END);
  await using engine = await createTestEngine({ definitions: [think] });
  const run = await engine.start(think, {});
  await waitsForBudget(engine);
  await until(async () => (await run.info()).status === "waiting");
  await engine.clock.advance("1 day");
  await run.raise({ usd: 1 });
  expect(await run.result()).toEqual({ usd: 1 });
  expect(await collect(run.attempts())).not.toContainEqual(expect.objectContaining({ outcome: "failed" }));
  expect(await books(run)).toEqual(usd(2, 2));
});

test("the items of a flow's spread share its budget, and wait for a raise together", async () => {
  const service = new Service();
  const fan = flow("fan", { input: typed<number[]>(), budget: { usd: 3 } })
    .action("plan", ["input"], { cost }, async (_ctx, { input }) => ({
      count: input.length,
      ...service.call(),
    }))
    .spread(
      "parts",
      ["input"],
      { cost },
      ({ input }) => input,
      async () => service.call(),
    )
    .output(["parts"], ({ parts }) => parts.length);
  await using engine = await createTestEngine({ definitions: [fan] });
  const run = await engine.start(fan, [1, 2, 3, 4]);
  await waitsForBudget(engine, 2);
  expect(service.total).toBe(3);
  await run.raise({ usd: 2 }, { by: "ann" });
  expect(await run.result()).toBe(4);
  expect(await books(run)).toEqual(usd(5, 5));
  expect((await collect(run.journal())).filter(({ type }) => type === "BudgetRaised")).toHaveLength(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a known result of a pure step reserves and spends nothing", async () => {
  const service = new Service();
  const embed = workflow("embed", { budget: { usd: 1, onReached: "fail" } }, async (ctx, text: string) =>
    ctx.run("embed", text, () => service.call(), { cost, pure: "1" }),
  );
  await using engine = await createTestEngine({ definitions: [embed] });
  await (await engine.start(embed, "a")).result();
  const run = await engine.start(embed, "a");
  await run.result();
  expect(service.total).toBe(1);
  expect(await books(run)).toEqual(usd(1, 0));
});

test("whatever crashes, retries and children do, what a service was paid stays within the cap", async () => {
  const service = new Service();
  let hold: ReturnType<typeof createGate> | undefined;
  const call = async (): Promise<{ usd: number }> => {
    const answer = service.call();
    // Every third call is lost with its process, every fifth fails after it was paid.
    if (service.charged.length % 3 === 0) await (hold = createGate()).wait();
    if (service.charged.length % 5 === 0) throw new Error("the answer got lost");
    return answer;
  };
  const retry = { maxAttempts: 3, baseDelay: 1 };
  const search = task("search", { cost, retry }, call);
  const kid = workflow("kid", async (ctx) => {
    await ctx.run("model", call, { cost, retry });
    await ctx.task(search);
  });
  const parent = workflow("parent", { budget: { usd: 12 } }, async (ctx) => {
    await Promise.all([1, 2, 3].map((n) => ctx.child(kid, undefined, n === 1 ? { budget: { usd: 3 } } : {})));
    await ctx.run("model", call, { cost, retry });
    return "done";
  });
  await using engine = await createTestEngine({ definitions: [parent, kid, search] });
  const run = await engine.start(parent);
  let cap = 12;
  let isEnded = false;
  const ended = run.result().then(
    () => (isEnded = true),
    () => (isEnded = true),
  );
  for (let round = 0; round < 60 && !isEnded; round += 1) {
    const gate = hold;
    hold = undefined;
    if (gate !== undefined) await engine.crash();
    await engine.clock.advance("5 seconds");
    expect(service.total).toBeLessThanOrEqual(cap);
    const asked = (await collect(engine.promises())).filter(({ kind }) => kind === "budget");
    if (asked.length > 0 && hold === undefined) {
      await engine.get(parent, run.id).raise({ usd: 2 });
      for (const { runId, definition } of asked)
        if (definition === "kid" && (await engine.get(kid, runId).budget())!.owner === runId) {
          await engine.get(kid, runId).raise({ usd: 2 });
          cap += 2;
        }
      cap += 2;
    }
  }
  await ended;
  const { spent, lost, reserved } = (await run.budget())!;
  expect(service.total).toBeLessThanOrEqual(cap);
  expect((spent.usd ?? 0) + (lost.usd ?? 0)).toBeGreaterThanOrEqual(service.total);
  expect(reserved).toEqual({ usd: 0 });
});
