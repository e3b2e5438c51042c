// Programs: one of each kind, with everything that a step of it can be and without races. Each has a driver that brings a run of it to
// its end, whatever its timing.

import { append, END, flow, graph, last, promise, signal, START, task, typed, update, workflow } from "reprise";
import type { Definition, Run } from "reprise";
import type { TestEngine } from "reprise/testing";
import { RETRY, type Timing } from "./timing.ts";

/** The definitions of one execution, and what starts and drives it. */
export interface Program {
  readonly definitions: readonly (Definition | ReturnType<typeof task>)[];
  /** Resolves when the run has ended. Returns the ids of the runs whose claims are compared. */
  drive(engine: TestEngine): Promise<readonly string[]>;
}

/** Longer than all retries of a step. */
const A_WHILE = "30s";

/** Drives a run until it waits for a message or has completed; retries it if it fails for good. */
async function settle(engine: TestEngine, run: Run<Definition>): Promise<void> {
  // On a server, a commit may still be on its way when the clock stops.
  for (let tries = 0; tries < 10; tries += 1) {
    await engine.clock.advance(A_WHILE);
    const { status } = await run.info();
    if (status === "failed") await run.retry();
    else if (status !== "running" && status !== "queued") return;
  }
}

/** Drives a run until the code of a generation has marked its patch. */
async function patched(engine: TestEngine, run: Run<Definition>, generation: number): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    await engine.clock.advance(0);
    if ((await run.info()).generation !== generation) continue;
    for await (const { type } of run.journal()) if (type === "PatchMarked") return;
  }
}

export function workflowProgram(timing: Timing): Program {
  const charge = task("charge", { retry: RETRY }, async (_ctx, n: number) => {
    await timing.attempt(`charge ${n}`);
    return { paid: n };
  });
  const hold = task("hold", { label: "nowhere" }, () => "never");
  const sum = workflow("sum", { ports: { add: signal<number>() } }, async (ctx, n: number) => {
    const added = await ctx.receive("add");
    return ctx.run("sum", () => timing.attempt("sum").then(() => n + added), { retry: RETRY });
  });
  const asked = workflow("asked", { ports: { answer: promise<string>() } }, (ctx) =>
    ctx.promise("answer", { key: "ann" }),
  );
  const ports = { go: signal<number>(), approve: promise<boolean>(), raise: update<number, number>() };
  const order = workflow("order", { ports }, async (ctx, { round }: { round: number }): Promise<unknown> => {
    const raised = Promise.withResolvers<number>();
    ctx.onUpdate("raise", async (by) => {
      const value = await ctx.run("raise", { by }, () => by + 1);
      raised.resolve(value);
      return value;
    });
    const isNew = ctx.patched("second-edition");
    ctx.state.set("round", round);
    const reminder = ctx.sleep("30 days", { id: "reminder" });
    reminder.catch(() => {});
    const waiting = ctx.task(hold);
    waiting.catch(() => {});
    const paid = await Promise.all([
      ctx.task(charge, 1),
      ctx.run("read", { n: 1 }, () => timing.attempt("read").then(() => "text"), { retry: RETRY }),
      ctx.task(charge, 2),
      ctx.run("write", () => timing.attempt("write"), { retry: RETRY }),
      ctx.sleep("5s"),
    ]);
    waiting.cancel("not needed");
    const child = ctx.child(sum, 10);
    await child.signal("add", round);
    const idle = ctx.child(sum, 0);
    await idle.cancel();
    const ended = await Promise.all([child, idle.catch((error: Error) => error.name)]);
    const other = ctx.child(asked, undefined, { id: `asked-${round}` });
    await ctx.resolve(asked, `asked-${round}`, "answer", "yes", { key: "ann", by: "order" });
    const answer = await other;
    ctx.send("mail", { round, answer });
    const refused = await ctx.run("refuse", () => timing.refuse()).catch((error: Error) => error.message);
    const approvals = await Promise.all([ctx.promise("approve"), ctx.promise("approve")]);
    const late = await ctx.promise("approve", { timeout: "1 hour" });
    await ctx.run("break", () => timing.breakOnce());
    const went = await ctx.receive("go");
    const value = await raised.promise;
    ctx.state.clear("round");
    reminder.cancel();
    if (round < 2) return ctx.continueAsNew({ round: round + 1 });
    return { isNew, paid, ended, refused, approvals, late, went, value };
  });
  return {
    definitions: [order, sum, asked, charge, hold] as never,
    async drive(engine) {
      const run = (await engine.start(order, { round: 1 }, { id: "order" })) as unknown as Run<typeof order>;
      for (const round of [1, 2]) {
        await patched(engine, run, round - 1);
        // Early messages wait for the code, late ones find it waiting.
        const approve = (): Promise<void> => run.resolve("approve", true, { by: "someone" });
        const go = (): Promise<void> => run.signal("go", round);
        if (timing.isEarly) await approve().then(go);
        if (timing.crashes) await engine.crash();
        await settle(engine, run);
        if (!timing.isEarly) await approve();
        await settle(engine, run);
        if (!timing.isEarly) await go();
        await run.update("raise", 5);
      }
      await settle(engine, run);
      return ["order", "asked-1", "asked-2"];
    },
  };
}

export function graphProgram(timing: Timing): Program {
  const price = task("price", { retry: RETRY }, async (_ctx, n: number) => {
    await timing.attempt(`price ${n}`);
    return n * 2;
  });
  const retry = RETRY;
  const shop = graph("shop", {
    state: { items: append<number>(), total: last(0), log: append<string>() },
    ports: { approve: promise<string>() },
  })
    .node("plan", { retry }, async (ctx) => {
      const n = await ctx.run("count", () => 3);
      await timing.attempt("plan");
      ctx.label("planned");
      return { items: [n], log: ["plan"] };
    })
    .node("each", { retry }, async (ctx, _state, item: number) => {
      const read = await ctx.run("read", { item }, () => timing.attempt(`read ${item}`).then(() => item), { retry });
      const cost = await ctx.task(price, item);
      await timing.attempt(`each ${item}`);
      if (item === 1) timing.breakOnce();
      return { items: [read + cost], log: [`each ${item}`] };
    })
    .node("other", { retry }, async (ctx) => {
      await ctx.run("other", () => timing.attempt("other"), { retry });
      await ctx.run("refuse", () => timing.refuse()).catch(() => {});
      return { log: [await ctx.promise("approve")] };
    })
    .node("sum", { retry }, async (ctx, state) => {
      await timing.attempt("sum");
      const approved = await ctx.promise("approve");
      return { total: state.items.reduce((sum, n) => sum + n, 0), log: [`sum ${approved}`] };
    })
    .node("fan", async () => ({}))
    .edge(START, "plan")
    .edge("plan", ["fan", "other"])
    .spread("fan", "each", () => [0, 1, 2, 3])
    .join(["each", "other"], "sum")
    .edge("sum", END);
  return {
    definitions: [shop, price] as never,
    async drive(engine) {
      const run = (await engine.start(shop, {}, { id: "shop" })) as unknown as Run<typeof shop>;
      if (timing.isEarly) await run.resolve("approve", "yes", { by: "someone" });
      else await engine.clock.advance(0);
      if (timing.crashes) await engine.crash();
      await engine.clock.advance("1s");
      if (!timing.isEarly) await run.resolve("approve", "yes");
      await settle(engine, run);
      // The step before `sum`, which gets the answer that the origin has got.
      await settle(engine, await run.fork({ step: 3, id: "forked", patch: { log: ["forked"] } }));
      return ["shop", "forked"];
    },
  };
}

export function flowProgram(timing: Timing): Program {
  const retry = RETRY;
  const double = workflow("double", (ctx, n: number) =>
    ctx.run("double", () => timing.attempt(`double ${n}`).then(() => n * 2), { retry }),
  );
  const mail = task("mail", { retry }, async (_ctx, n: number) => {
    await timing.attempt("mail");
    return `sent ${n}`;
  });
  const pipeline = flow("pipeline", { input: typed<number>() })
    .action("fetch", ["input"], { retry }, async (_ctx, { input }) => {
      await timing.attempt("fetch");
      return Array.from({ length: input }, (_, n) => n);
    })
    .inline("size", ["fetch"], ({ fetch }) => fetch.length)
    .action("broken", ["input"], { catch: (error) => `caught ${error.message}` }, (): string => {
      throw new Error("always");
    })
    .spread(
      "refused",
      ["size"],
      { settle: true },
      () => [1, 2],
      () => timing.refuse(),
    )
    .spread(
      "each",
      ["fetch"],
      { retry, concurrency: 3 },
      ({ fetch }) => fetch,
      async (_ctx, item) => {
        await timing.attempt(`each ${item}`);
        if (item === 2) timing.breakOnce();
        return item * 10;
      },
    )
    .spread("kids", ["fetch"], ({ fetch }) => fetch.slice(0, 3), double)
    .call("doubled", ["size"], double, ({ size }) => size)
    .call("mailed", ["size"], mail, ({ size }) => size)
    .when(
      "large",
      ["size"],
      ({ size }) => size > 100,
      (branch) => branch.action("archive", ["size"], (_ctx, { size }) => size),
    )
    .action("joined", ["archive", "doubled", "broken"], { retry }, async (_ctx, { archive, doubled, broken }) => {
      await timing.attempt("joined");
      return [archive ?? 0, doubled, broken];
    })
    .output(["each", "kids", "joined", "mailed"], (given) => given);
  return {
    definitions: [pipeline, double, mail] as never,
    async drive(engine) {
      const run = (await engine.start(pipeline, 12, { id: "pipeline" })) as unknown as Run<typeof pipeline>;
      await engine.clock.advance(0);
      if (timing.crashes) await engine.crash();
      while ((await run.info()).status !== "completed") await settle(engine, run);
      return ["pipeline"];
    },
  };
}

export const PROGRAMS = { workflow: workflowProgram, graph: graphProgram, flow: flowProgram } as const;
