// Replay of graphs: node by node, attempt by attempt, from recordings only (ACCEPTANCE 13 and 14).

import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { append, createClient, createEngine, END, graph, last, promise, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate } from "../engine/world.ts";
import { openStores } from "./graph-stores.ts";
import { asking } from "./calling-graph.ts";

interface Message {
  role: string;
  text: string;
}

/** A graph whose calls of the outside are counted. */
function chatting() {
  const live = { calls: 0 };
  const chat = (messages: number): Message => {
    live.calls += 1;
    return { role: "assistant", text: `answer ${messages}` };
  };
  const definition = graph("chat", { state: { messages: append<Message>(), done: last(false) } })
    .node("think", { effects: { recordable: true } }, async (ctx, state) => {
      const reply = await ctx.run("llm", { count: state.messages.length }, (_op, { count }) => chat(count));
      return { messages: [reply] };
    })
    .node("note", async (_ctx, state) => ({ done: state.messages.length >= 3 }))
    .edge(START, "think")
    .edge("think", "note")
    .edge("note", END, (state) => state.done)
    .edge("note", "think");
  return { live, definition };
}

test("recorded replay: a copy of the store replays with 0 live calls and the identical final state", async () => {
  const { live, definition } = chatting();
  using stores = openStores();
  let output: unknown;
  {
    await using engine = await createEngine({ store: stores.source, definitions: [definition] });
    output = await (await engine.start(definition, {}, { id: "r" })).result();
  }
  expect(live.calls).toBe(3);
  await using copy = await createClient({ store: `sqlite:${stores.path}`, definitions: [definition] });
  const replay = await copy.get(definition, "r").replay();
  expect(live.calls).toBe(3);
  expect(replay).toEqual({
    status: "same",
    digest: (await copy.get(definition, "r").info()).digest,
    calls: { recorded: 3, live: 0 },
    end: { status: "completed", output },
  });
});

test("recorded replay: one changed byte of a response is a mismatch that names step, node and attempt", async () => {
  const { live, definition } = chatting();
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [definition] });
  const run = await engine.start(definition, {}, { id: "r" });
  await run.result();
  stores.sql(
    `update journal set data = cast(replace(cast(data as text), 'answer 1', 'answer 7') as blob)
     where command = 'Node(3.0)#0/Operation(0)' returning seq`,
  );
  for (const verdict of [await run.replay(), await run.verify()]) {
    expect(verdict).toMatchObject({
      status: "mismatch",
      where: "Node(3.0)#0/Operation(0)",
      step: 3,
      node: "think",
      attempt: 1,
    });
  }
  expect(live.calls).toBe(3);
});

test("lookup by attempt: attempt 1 failed, attempt 2 succeeded, and the replay sees the failure, then the success", async () => {
  const seen: string[] = [];
  let calls = 0;
  const g = graph("flaky", { state: { text: last("") } })
    .node("call", { retry: { maxAttempts: 2, baseDelay: 10, maxDelay: 10 } }, async (ctx) => {
      try {
        const text = await ctx.run("ask", { attempt: ctx.attempt }, (_op, { attempt }) => {
          calls += 1;
          if (attempt === 1) throw new TypeError("not yet");
          return `answer of attempt ${attempt}`;
        });
        seen.push(`${ctx.attempt} ${text}`);
        return { text };
      } catch (error) {
        seen.push(`${ctx.attempt} ${(error as Error).name} ${(error as Error).message}`);
        throw error;
      }
    })
    .edge(START, "call");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 minute");
  await run.result();
  const live = seen.splice(0);
  expect(live).toEqual(["1 TypeError not yet", "2 answer of attempt 2"]);
  expect(await run.replay()).toMatchObject({ status: "same", calls: { recorded: 2, live: 0 } });
  expect(seen).toEqual(live);
  expect(calls).toBe(2);
});

test("ctx.now in a node is the time of its start, then of its last answer; a replay sees the same, also after a crash", async () => {
  const gates = Array.from({ length: 4 }, () => createGate());
  const seen: string[] = [];
  let calls = 0;
  const g = graph("clock", { state: { log: append<number>() }, maxConcurrentNodes: 1, ports: { go: promise() } })
    .node("one", { retry: { maxAttempts: 2, baseDelay: 7, maxDelay: 7 } }, async (ctx, _state, item: number) => {
      seen.push(`${item} ${ctx.attempt} ${ctx.now().getTime()}`);
      await ctx.run("wait", () => gates[calls++]!.wait());
      seen.push(`${item} ${ctx.attempt} ${ctx.now().getTime()}`);
      if (item === 1 && ctx.attempt === 1) throw new Error("again");
      return { log: [ctx.now().getTime()] };
    })
    .node("two", async (ctx) => {
      const began = ctx.now().getTime();
      await ctx.promise("go");
      return { log: [began, ctx.now().getTime()] };
    })
    .spread(START, "one", () => [0, 1, 2])
    .join(["one"], "two")
    .edge("two", END);
  await using engine = await createTestEngine({ definitions: [g], now: new Date(1_000) });
  const run = await engine.start(g, {});
  for (const gate of gates) {
    await gate.reached;
    await engine.clock.advance(100);
    gate.open();
    await engine.clock.advance(50);
  }
  const live = seen.splice(0);
  // Whoever takes the run up again sees its node begin when it began.
  await engine.clock.advance(1_000);
  await engine.crash();
  await engine.clock.advance(1_000);
  await run.resolve("go");
  const { log } = await run.result();
  const at = (line: string): number => Number(line.split(" ")[2]);
  const failed = live.findIndex((line, index) => line.startsWith("1 1") && index % 2 === 1);
  expect(live.filter((_, index) => index % 2 === 0).map(at)).toEqual(
    live.flatMap((_, index) =>
      index % 2 === 1 ? [] : index === 0 ? [1_000] : [at(live[index - 1]!) + (index === failed + 1 ? 7 : 0)],
    ),
  );
  expect(log.at(-2)).toBe(at(live.at(-1)!));
  expect(log.at(-1)).toBeGreaterThanOrEqual(log.at(-2)! + 2_000);
  expect(await run.replay()).toMatchObject({ status: "same" });
  expect(seen).toEqual(live);
});

test("a replay makes no call at all: in a process without network it ends in the identical state, byte for byte", async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    // The second one fails: its node is tried again.
    response.statusCode = requests === 2 ? 500 : 200;
    response.end(JSON.stringify({ text: `answer ${requests}`, done: requests >= 4 }));
  }).listen(0);
  using stores = openStores();
  const definition = asking(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  let output: unknown;
  let digest: string;
  try {
    await using engine = await createEngine({ store: stores.source, definitions: [definition] });
    const run = await engine.start(definition, {}, { id: "r" });
    output = await run.result();
    ({ digest } = await run.info());
  } finally {
    server.close();
  }
  expect(requests).toBe(4);
  const script = fileURLToPath(new URL("replay-offline.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=reprise-source",
    "--no-warnings",
    script,
    stores.path,
    "r",
  ]);
  expect(JSON.parse(stdout)).toEqual({
    replay: { status: "same", digest, calls: { recorded: 4, live: 0 } },
    state: JSON.stringify(output),
    digest,
    reached: [],
  });
  expect(requests).toBe(4);
});

test("a wait for a person inside try and catch does not throw: after a crash the node waits again, and replays", async () => {
  const caught: unknown[] = [];
  let before = 0;
  const g = graph("approval", { state: { log: append<string>() }, ports: { ok: promise<{ by: string }>() } })
    .node("charge", async (ctx) => {
      const paid = await ctx.run("charge", () => `paid ${++before}`);
      try {
        const { by } = await ctx.promise("ok", { show: { paid } });
        return { log: [paid, by] };
      } catch (error) {
        caught.push(error);
        return { log: ["refunded"] };
      } finally {
        caught.push("left");
      }
    })
    .edge(START, "charge");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 hour");
  expect((await run.info()).status).toBe("waiting");
  await engine.crash();
  await engine.clock.advance("30 days");
  expect(caught).toEqual([]);
  expect(await run.replay()).toMatchObject({ status: "same" });
  expect(caught).toEqual([]);
  await run.resolve("ok", { by: "Eve" });
  expect(await run.result()).toEqual({ log: ["paid 1", "Eve"] });
  expect(caught.splice(0)).toEqual(["left"]);
  expect(await run.replay()).toMatchObject({ status: "same", end: { output: { log: ["paid 1", "Eve"] } } });
  expect(caught.splice(0)).toEqual(["left"]);
  const [shown] = (await Array.fromAsync(run.journal())).filter(({ type }) => type === "PromiseCreated");
  expect(shown?.data).toMatchObject({ promiseId: "ok", show: { paid: "paid 1" } });

  const refused = await engine.start(g, {});
  await engine.clock.advance(0);
  await refused.reject("ok", new Error("no"));
  expect(await refused.result()).toEqual({ log: ["refunded"] });
  expect(caught).toMatchObject([{ message: "no" }, "left"]);
  expect(await refused.replay()).toMatchObject({ status: "same" });
  expect(before).toBe(2);
});

test("a race inside a node has the same winner when the node runs again after a crash", async () => {
  const slow = createGate();
  const g = graph("racing", { state: { log: append<string>() }, ports: { early: promise<string>(), go: promise() } })
    .node("race", async (ctx) => {
      const first = ctx.run("first", () => slow.wait().then(() => "first"));
      const winner = await Promise.race([first, ctx.promise("early"), ctx.run("second", () => "second")]);
      slow.open();
      await first;
      const early = await ctx.promise("early");
      await ctx.run(`after ${winner}`, () => 1);
      await ctx.promise("go");
      return { log: [winner, early] };
    })
    .edge(START, "race");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance(10);
  await run.resolve("early", "early");
  await engine.clock.advance(10);
  await engine.crash();
  await engine.clock.advance(10);
  await run.resolve("go");
  expect(await run.result()).toEqual({ log: ["second", "early"] });
  expect(await run.replay()).toMatchObject({ status: "same" });
});
