// Crashes: a graph that is killed at any commit ends as if it had not been.

import { expect, test } from "vitest";
import { append, END, goto, graph, last, promise, START, stream, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { openStores } from "./graph-stores.ts";

const price = task("price", (_ctx, item: string) => item.length);
const audit = workflow("audit", async (ctx, total: number) => {
  await ctx.sleep("1 hour");
  return ctx.run("sign", () => `signed ${total}`);
});
const sub = graph("sub", { state: { words: append<string>() }, output: (state) => state.words.join(" ") })
  .node("say", async (_ctx, state) => ({ words: [`word ${state.words.length}`] }))
  .edge(START, "say")
  .edge("say", END, (state) => state.words.length >= 2)
  .edge("say", "say");

/** A spread, a loop, a join, a retry, a promise with a decision, tasks and two kinds of children. */
const everything = graph("everything", {
  state: { items: last<readonly string[]>([]), log: append<string>(), round: last(0), signed: last("") },
  ports: { approve: promise<{ ok: boolean }>(), notes: stream<string>() },
})
  .node("plan", async (ctx) => {
    ctx.emit("notes", "planning");
    return { items: await ctx.run("list", () => ["a", "bb", "ccc"]), log: ["plan"] };
  })
  .node("each", { retry: { maxAttempts: 3, baseDelay: 10, maxDelay: 10 } }, async (ctx, _state, item: string) => {
    const cents = await ctx.task(price, item);
    if (item === "bb" && ctx.attempt === 1) throw new Error("once");
    return { log: [`${item} ${cents} ${ctx.random()}`] };
  })
  .node("side", async (ctx) => ({ log: [`side ${await ctx.child(sub, {})}`] }))
  .node("fan", async () => {})
  .node("ask", async (ctx, state) => {
    ctx.label(`asked ${state.round}`);
    const decision = await ctx.promise("approve", { timeout: "1 day", show: state.log.length });
    return decision?.ok === true ? goto("again", { log: ["approved"] }) : goto(END, { log: ["refused"] });
  })
  .node("again", async (_ctx, state) => ({ round: state.round + 1 }))
  .node("sign", async (ctx, state) => ({ signed: await ctx.child(audit, state.log.length) }))
  .edge(START, "plan")
  .edge("plan", ["fan", "side"])
  .spread("fan", "each", (state) => state.items)
  .join(["each", "side"], "ask")
  .edge("again", "plan", (state) => state.round < 2)
  .edge("again", "sign");

test("crash everywhere: a spread, a loop, a join, a retry, a promise and children end the same after a crash at every commit", async () => {
  const { output, crashes } = await crashEverywhere(
    everything,
    {},
    {
      definitions: [price, audit, sub],
      drive: async (engine, id) => {
        await engine
          .get(everything, id)
          .resolve("approve", { ok: true })
          .catch(() => {});
      },
    },
  );
  expect(crashes).toBeGreaterThan(40);
  expect(output.round).toBe(2);
  expect(output.log.map((line) => line.split(" ")[0])).toEqual(
    [1, 2].flatMap(() => ["plan", "side", "a", "bb", "ccc", "approved"]),
  );
  expect(output.signed).toBe("signed 12");
}, 120_000);

test("crash before and after a commit: the step is run again with the same key, or not at all", async () => {
  const keysOf = async (when: "before" | "after" | undefined) => {
    const ran: number[] = [];
    const g = graph("steps", { state: { n: last(0) } })
      .node("add", async (ctx, state) => {
        ran.push(ctx.step);
        return { n: state.n + 1 };
      })
      .edge(START, "add")
      .edge("add", END, (state) => state.n === 4)
      .edge("add", "add");
    let armed = when !== undefined;
    const dead: { crash?: () => Promise<void> } = {};
    using stores = openStores(async (writes, apply) => {
      const isStep = writes.some(
        (write) => write.write === "turn" && write.entries.some(({ command }) => command === "Node(2.0)"),
      );
      if (!armed || !isStep || dead.crash === undefined) return apply();
      armed = false;
      if (when === "after") await apply();
      await dead.crash();
      throw new Error("dead");
    });
    await using engine = await createTestEngine({ store: stores.source, definitions: [g] });
    dead.crash = () => engine.crash();
    const run = await engine.start(g, {}, { id: "r" });
    expect(await run.result()).toEqual({ n: 4 });
    expect(await stores.store.check()).toEqual([]);
    return { ran, keys: stores.sql("select step, key from checkpoints order by step") };
  };
  const undisturbed = await keysOf(undefined);
  expect(undisturbed.ran).toEqual([1, 2, 3, 4]);
  expect(undisturbed.keys).toHaveLength(5);
  const before = await keysOf("before");
  expect(before).toEqual({ ran: [1, 2, 2, 3, 4], keys: undisturbed.keys });
  expect(await keysOf("after")).toEqual(undisturbed);
});
