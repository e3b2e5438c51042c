// Evaluations: recorded runs are forked with changed code, other models or answers, and compared with themselves.

import { expect, test } from "vitest";
import { append, END, flow, graph, last, promise, START, task, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "./world.ts";

let calls: string[] = [];
const search = task("search", (_, what: string) => (calls.push(`search ${what}`), `found ${what}`));
let edit: "none" | "answer" | "tool" | "throw" | "wait" = "none";

/** A model is called live if the evaluation replaces it. */
const support = workflow("support", { ports: { ok: promise<boolean>() } }, async (ctx, question: string) => {
  const model = ctx.models["fast"] ?? "fast";
  const thought = await ctx.run(
    "think",
    { model, question },
    () => (calls.push(`${model} ${question}`), `${model}: ${question}`),
    {
      live: model !== "fast",
    },
  );
  const found = await ctx.task(search, edit === "tool" ? `all of ${question}` : question);
  if (edit === "throw") throw new TypeError("no luck");
  if (edit === "wait") await ctx.promise("ok");
  ctx.send("mail", question);
  return { text: edit === "answer" ? found.toUpperCase() : found, by: thought.split(":")[0] };
});

const sent: unknown[] = [];
async function engineWith(questions: readonly string[]) {
  [calls, edit, sent.length] = [[], "none", 0];
  const engine = await createTestEngine({
    definitions: [support, search],
    outbox: { mail: (payload) => void sent.push(payload) },
  });
  for (const question of questions)
    await (await engine.start(support, question, { id: `run-${question}`, tags: ["prod"] })).result();
  await engine.drain();
  await engine.crash();
  calls = [];
  return engine;
}
const same = (was: { output?: { text: string } | undefined }, is: { output?: { text: string } | undefined }): number =>
  Number(was.output?.text === is.output?.text);

test("an evaluation of unchanged code is the same, calls nothing and sends nothing", async () => {
  await using engine = await engineWith(["a", "b", "c"]);
  expect(sent).toHaveLength(3);
  const progress: string[] = [];
  const report = await engine.evaluate(support, {
    runs: { tag: "prod" },
    id: "eval-1",
    score: { same },
    onProgress: (done, total) => progress.push(`${done}/${total}`),
  });
  expect(report).toMatchObject({
    id: "eval-1",
    definition: "support",
    effects: "recorded",
    counts: { total: 3, same: 3, changed: 0, stopped: 0, skipped: 0 },
    scores: { same: { mean: 1, min: 1, count: 3, failed: 0 } },
  });
  expect(progress).toEqual(["1/3", "2/3", "3/3"]);
  expect(report.runs.map(({ run }) => run)).toEqual(["run-c", "run-b", "run-a"]);
  expect(report.runs[0]).toMatchObject({
    fork: "eval-1/run-c",
    was: { id: "run-c", input: "c", status: "completed", output: { text: "found c" } },
    is: { id: "eval-1/run-c", status: "completed", output: { text: "found c" } },
  });
  // The forks are no runs to evaluate.
  expect((await engine.evaluate(support, { runs: {} })).counts.total).toBe(3);
  await engine.drain();
  expect([calls, sent.length]).toEqual([[], 3]);
});

test("changed code is found: another output, a call without a recorded answer, a failure, an endless wait", async () => {
  await using engine = await engineWith(["a"]);
  edit = "answer";
  const changed = await engine.evaluate(support, { runs: ["run-a"], score: { same } });
  expect(changed.runs[0]).toMatchObject({ same: false, scores: { same: 0 }, is: { output: { text: "FOUND A" } } });
  expect(changed.scores["same"]).toMatchObject({ mean: 0, max: 0, worst: [] });
  edit = "tool";
  const stopped = await engine.evaluate(support, { runs: ["run-a"], id: "stops" });
  expect(stopped.runs[0]).toMatchObject({
    is: {
      status: "blocked",
      error: { code: "EFFECT_NOT_RECORDED", message: expect.stringContaining("Task(0) (search)") },
    },
    firstDifference: "Task(0)",
  });
  expect(stopped.counts).toMatchObject({ stopped: 1, changed: 0 });
  // Nothing stays blocked, and the same evaluation again says the same.
  expect(await Array.fromAsync(engine.list({ status: "blocked" }))).toEqual([]);
  expect((await engine.evaluate(support, { runs: ["run-a"], id: "stops" })).runs).toEqual(stopped.runs);
  edit = "throw";
  const failed = await engine.evaluate(support, { runs: ["run-a"] });
  expect(failed.runs[0]).toMatchObject({ is: { status: "failed", error: { name: "TypeError", message: "no luck" } } });
  edit = "wait";
  const waits = await engine.evaluate(support, { runs: ["run-a"] });
  expect(waits.runs[0]).toMatchObject({ is: { status: "waiting", error: { code: "EVALUATION_TIMEOUT" } } });
  expect(calls).toEqual([]);
});

test("another model is called in every fork, and nothing else", async () => {
  await using engine = await engineWith(["a", "b"]);
  const report = await engine.evaluate(support, {
    runs: { tag: "prod" },
    models: { fast: "strong" },
    score: { same, strong: (_, is) => Number(is.output?.by === "strong") },
  });
  expect(calls.toSorted()).toEqual(["strong a", "strong b"]);
  expect(report.models).toEqual({ fast: "strong" });
  expect(report.scores).toMatchObject({ same: { mean: 1 }, strong: { mean: 1 } });
  expect(report.counts).toMatchObject({ changed: 2, same: 0 });
  expect(report.runs[0]?.firstDifference).toBe("Operation(0)");
});

test("an evaluation that is repeated with its id continues: forks that have ended are not repeated", async () => {
  await using engine = await engineWith(["a", "b", "c", "d"]);
  const options = { runs: { tag: "prod" }, models: { fast: "strong" }, id: "nightly", concurrency: 1 } as const;
  const stop = new AbortController();
  const aborted = await rejection(
    engine.evaluate(support, {
      ...options,
      signal: stop.signal,
      onProgress: (done) => done === 2 && stop.abort(new Error("stop")),
    }),
  );
  expect(aborted.message).toBe("stop");
  expect(calls).toEqual(["strong d", "strong c"]);
  await engine.crash();
  const report = await engine.evaluate(support, options);
  expect(calls).toEqual(["strong d", "strong c", "strong b", "strong a"]);
  expect(report.counts.total).toBe(4);
  // With other options it is another evaluation.
  expect(await rejection(engine.evaluate(support, { ...options, models: { fast: "other" } }))).toMatchObject({
    code: "START_CONFLICT",
  });
});

test("a scorer that throws or returns no number is reported, and does not end the evaluation", async () => {
  await using engine = await engineWith(["a", "b"]);
  const report = await engine.evaluate(support, {
    runs: { tag: "prod" },
    score: {
      broken: ({ id }) => {
        if (id === "run-a") throw new Error("no judge");
        return 0.5;
      },
      later: async () => Number.NaN,
    },
  });
  expect(report.runs.map(({ scoreErrors }) => scoreErrors)).toEqual([
    { later: "expected a number, got NaN" },
    { broken: "no judge", later: "expected a number, got NaN" },
  ]);
  expect(report.scores).toMatchObject({ broken: { mean: 0.5, failed: 1, count: 1 }, later: { failed: 2, count: 0 } });
});

test("one budget holds for all forks of an evaluation, also after it was continued", async () => {
  let paid = 0;
  const thinker = workflow("thinker", async (ctx, n: number) => {
    const model = ctx.models["fast"] ?? "fast";
    const call = (): { usd: number } => {
      paid += 0.4;
      return { usd: 0.4 };
    };
    const cost = { reserve: { usd: 0.5 }, actual: ({ usd }: { usd: number }) => ({ usd }) };
    await ctx.run("think", { model, n }, call, { live: model !== "fast", cost });
    return n;
  });
  await using engine = await createTestEngine({ definitions: [thinker] });
  for (const n of [1, 2, 3, 4, 5]) await (await engine.start(thinker, n, { id: `t-${n}` })).result();
  paid = 0;
  const options = { runs: {}, id: "paid", models: { fast: "strong" }, budget: { usd: 1.3 } } as const;
  const stop = new AbortController();
  const onProgress = (done: number): void => void (done === 1 && stop.abort(new Error("stop")));
  await rejection(engine.evaluate(thinker, { ...options, signal: stop.signal, onProgress }));
  const report = await engine.evaluate(thinker, options);
  // Two forks end with 0.4 each, and the third with what is left of 0.5. A reservation of 0.5 no longer fits after that.
  expect(report.runs.map(({ is }) => is?.error?.code ?? is?.status)).toEqual([
    "completed",
    "completed",
    "completed",
    "BUDGET_REACHED",
    "BUDGET_REACHED",
  ]);
  expect(paid).toBeCloseTo(1.2);
  expect(report.cost?.usd).toBeCloseTo(1.2);
  // Without anything left, nothing is forked.
  const none = await engine.evaluate(thinker, { ...options, id: "none", budget: { calls: 0 } });
  expect([none.counts.skipped, none.runs[0]?.skipped?.code]).toEqual([5, "BUDGET_REACHED"]);
  expect(paid).toBeCloseTo(1.2);
});

test("graphs are evaluated from a node and with other state, flows with their derived nodes", async () => {
  calls = [];
  const agent = graph("agent", {
    state: { tone: last("kind"), log: append<string>() },
    output: ({ log }) => log.join(),
  })
    .node("plan", async (ctx) => ({ log: [await ctx.run("plan", () => (calls.push("plan"), "planned"))] }))
    .node("write", async (ctx, { tone }) => ({
      log: [
        await ctx.run(
          "write",
          { model: ctx.models["fast"] ?? "fast" },
          (_, { model }) => (calls.push(model), `${model} ${tone}`),
          {
            live: ctx.models["fast"] !== undefined,
          },
        ),
      ],
    }))
    .edge(START, "plan")
    .edge("plan", "write", ({ log }) => log.length === 1)
    .edge("plan", END)
    .edge("write", END);
  const quote = flow("quote", { input: typed<number>() })
    .action("price", ["input"], (_ctx, { input }) => (calls.push("price"), input * 10))
    .inline("net", ["price"], ({ price }) => price + 1)
    .output(["net"], ({ net }) => net);
  await using engine = await createTestEngine({ definitions: [agent, quote] });
  await (await engine.start(agent, {}, { id: "a" })).result();
  await (await engine.start(quote, 5, { id: "q" })).result();
  calls = [];
  const whole = await engine.evaluate(agent, { runs: ["a"] });
  expect(whole.runs[0]).toMatchObject({ same: true, is: { output: "planned,fast kind" } });
  const models = await engine.evaluate(agent, {
    runs: {},
    at: { node: "write" },
    models: { fast: "strong" },
    patch: { tone: "short" },
    score: { length: (was, is) => (is.output?.length ?? 0) - (was.output?.length ?? 0) },
  });
  expect(models.runs[0]).toMatchObject({ is: { output: "planned,strong short" }, scores: { length: 3 } });
  expect(calls).toEqual(["strong"]);
  expect((await engine.evaluate(quote, { runs: ["q"] })).runs[0]).toMatchObject({ same: true, is: { output: 51 } });
  const answered = await engine.evaluate(quote, { runs: ["q"], at: { node: "price" }, answers: { price: 7 } });
  expect(answered.runs[0]).toMatchObject({ firstDifference: "price", is: { output: 8 } });
  const nowhere = await engine.evaluate(agent, { runs: {}, at: { call: { name: "write", nth: 2 } } });
  expect(nowhere.runs[0]).toMatchObject({ skipped: { code: "CHECKPOINT_NOT_FOUND" }, same: false });
  expect(nowhere.counts).toMatchObject({ total: 1, skipped: 1 });
  expect(await rejection(engine.evaluate(quote, { runs: {}, at: { step: 1 } }))).toMatchObject({
    code: "BAD_OPTIONS",
    message: "evaluate: step is no place of quote, which is a flow.",
  });
});

test("options that cannot be meant are refused before anything is forked", async () => {
  await using engine = await engineWith(["a"]);
  for (const options of [
    undefined,
    {},
    { runs: "run-a" },
    { runs: [1] },
    { runs: {}, score: { same: 1 } },
    { runs: {}, concurrency: 0 },
    { runs: {}, at: {} },
    { runs: {}, scores: {} },
    { runs: { definition: "other" } },
    { runs: {}, models: { fast: 1 } },
    { runs: {}, budget: { usd: -1 } },
  ])
    expect(String((await rejection(engine.evaluate(support, options as never))).code), JSON.stringify(options)).toMatch(
      /^BAD_/,
    );
  expect(await rejection(engine.evaluate(support, { runs: ["nobody"] }))).toMatchObject({ code: "RUN_NOT_FOUND" });
  expect((await Array.fromAsync(engine.list())).length).toBe(1);
});
