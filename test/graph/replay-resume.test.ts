// Replay with mode `resume`: recordings up to a checkpoint, live from there, on a private copy.

import { expect, test } from "vitest";
import { append, createClient, createEngine, END, graph, last, promise, START, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";
import { openStores } from "./graph-stores.ts";

function counting() {
  const live: string[] = [];
  let suffix = "";
  const price = task("price", (_ctx, n: number) => {
    live.push(`task ${n}`);
    return n * 10;
  });
  const sign = workflow("sign", async (ctx, n: number) =>
    ctx.run("sign", () => {
      live.push(`sign ${n}`);
      return `signed ${n}`;
    }),
  );
  const definition = graph("steps", {
    state: { log: append<string>(), n: last(0) },
    ports: { ok: promise<string>() },
  })
    .node("add", async (ctx, { n }) => {
      ctx.label(`add ${n}`);
      const drawn = ctx.random();
      const text = await ctx.run("call", { n }, () => {
        live.push(`call ${n}`);
        return `${n} ${drawn}${suffix}`;
      });
      ctx.send("mail", text);
      return { n: n + 1, log: [`${text} ${await ctx.task(price, n)}`] };
    })
    .node("ask", async (ctx) => ({ log: [await ctx.promise("ok"), await ctx.child(sign, 7)] }))
    .edge(START, "add")
    .edge("add", "ask", ({ n }) => n >= 3)
    .edge("add", "add")
    .edge("ask", END);
  return { definition, definitions: [definition, price, sign] as const, live, change: (to: string) => (suffix = to) };
}

test("resume: steps before the checkpoint come from the journal, those after it are live, and the store is unchanged", async () => {
  const { definition, definitions, live, change } = counting();
  const mails: unknown[] = [];
  using stores = openStores();
  await using engine = await createEngine({
    store: stores.source,
    definitions,
    outbox: { mail: async (payload) => void mails.push(payload) },
  });
  const run = await engine.start(definition, {}, { id: "r" });
  await run.resolve("ok", "fine");
  const output = await run.result();
  expect(live.splice(0)).toEqual(["call 0", "task 0", "call 1", "task 1", "call 2", "task 2", "sign 7"]);
  const dump = (): unknown => stores.sql("select * from journal order by run, seq");
  const before = JSON.stringify(dump());

  const same = await run.replay({ mode: "resume", from: 2 });
  expect(live.splice(0)).toEqual(["call 2", "task 2", "sign 7"]);
  expect(same).toMatchObject({
    status: "same",
    calls: { recorded: 2, live: 3 },
    end: { status: "completed", output },
  });

  change("!");
  const other = await run.replay({ mode: "resume", from: { label: "add 1" } });
  expect(live.splice(0)).toEqual(["call 2", "task 2", "sign 7"]);
  expect(other).toMatchObject({ end: { status: "completed" } });
  const log =
    other.status === "same" && other.end?.status === "completed" ? (other.end.output as typeof output).log : [];
  expect(log.slice(0, 2)).toEqual(output.log.slice(0, 2));
  expect(log[2]).toBe(output.log[2]!.replace(/ 20$/, "! 20"));

  expect(await run.replay({ mode: "resume" })).toMatchObject({ calls: { live: 0 }, end: { output } });
  expect(JSON.stringify(dump())).toBe(before);
  expect(mails).toHaveLength(3);
});

test("resume: an unanswered wait ends the replay, and an answered one is answered again", async () => {
  const { definition, definitions, live } = counting();
  await using engine = await createTestEngine({ definitions });
  const run = await engine.start(definition, {});
  await engine.clock.advance("1 minute");
  live.length = 0;
  expect(await run.replay({ mode: "resume", from: 1 })).toMatchObject({
    status: "same",
    calls: { recorded: 1, live: 4 },
    end: { status: "waiting" },
  });
  expect(live).toEqual(["call 1", "task 1", "call 2", "task 2"]);
  await run.resolve("ok", "fine");
  const output = await run.result();
  expect(output.log.slice(-2)).toEqual(["fine", "signed 7"]);
  expect(await run.replay({ mode: "resume", from: 1 })).toMatchObject({ end: { status: "completed", output } });
});

test("resume: code that differs from the recorded part stops there, and a failure after it is reported", async () => {
  let calls = 0;
  const build = (request: string, fails = false) =>
    graph("two", { state: { log: append<string>() } })
      .node("one", async (ctx) => ({ log: [await ctx.run("one", { request }, () => `${++calls}`)] }))
      .node("two", async (ctx) => {
        await ctx.run("two", () => ++calls);
        if (fails) throw new TypeError("broken today");
      })
      .edge(START, "one")
      .edge("one", "two");
  using stores = openStores();
  {
    await using engine = await createEngine({ store: stores.source, definitions: [build("a")] });
    await (await engine.start("two", {}, { id: "r" })).result();
  }
  const replay = async (definition: ReturnType<typeof build>) => {
    await using engine = await createClient({
      store: `sqlite:${stores.path}`,
      definitions: [definition],
    });
    return await engine.get(definition, "r").replay({ mode: "resume", from: 1 });
  };
  expect(await replay(build("b"))).toMatchObject({ status: "mismatch", step: 1, node: "one", attempt: 1 });
  expect(calls).toBe(2);
  expect(await replay(build("a", true))).toMatchObject({
    status: "same",
    calls: { recorded: 1, live: 1 },
    end: { status: "failed", error: { name: "TypeError", message: "broken today" } },
  });
  expect(calls).toBe(3);
});

test("resume is rejected with invalid options", async () => {
  const plain = workflow("plain", async (ctx) => ctx.run("x", () => 1));
  const { definition, definitions } = counting();
  await using engine = await createTestEngine({ definitions: [...definitions, plain] });
  const run = await engine.start(plain);
  await run.result();
  expect(await rejection(run.replay({ mode: "resume" }))).toMatchObject({ code: "BAD_OPTIONS" });
  const other = await engine.start(definition, {});
  await engine.clock.advance(0);
  for (const options of [
    { mode: "half" },
    { from: 1 },
    { mode: "resume", from: -1 },
    { mode: "resume", live: ["add"] },
  ])
    expect(await rejection(other.replay(options as never))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(other.replay({ mode: "resume", from: 99 }))).toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
});
