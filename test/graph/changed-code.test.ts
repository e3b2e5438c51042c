// Changed code: runs whose graph changes while they are in progress.

import { expect, test } from "vitest";
import {
  append,
  channel,
  END,
  graph,
  last,
  promise,
  START,
  type Definition,
  type NodeContext,
  type RepriseError,
  type Run,
} from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, rejection, storeAround } from "../engine/world.ts";

const ports = { go: promise() };

/** A store that code after code is deployed on; the run is called "r". */
function createSite() {
  const folder = createFolder();
  const deploy = async <D extends Definition>(code: D, then: (run: Run<D>) => Promise<void>): Promise<void> => {
    const source = storeAround((_writes, apply) => apply(), folder.file("g.db"));
    await using engine = await createTestEngine({ definitions: [code as Definition], store: source });
    if ((await engine.find("r")) === undefined) await engine.start(code.name, {} as never, { id: "r" });
    await then(engine.get(code as Definition, "r") as Run<D>);
    await engine.clock.advance(0);
    // Whatever the code, the checkpoints say what the journal says.
    expect(await source.store.check()).toEqual([]);
  };
  return {
    deploy,
    begin: (code: Definition) => deploy(code, async () => {}),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

async function stopOf(run: { result(): Promise<unknown> }): Promise<RepriseError> {
  const error = (await rejection(run.result())) as RepriseError;
  expect(error).toMatchObject({ code: "RUN_BLOCKED", details: { code: "GRAPH_CHANGED", status: "blocked" } });
  return error;
}

const wait = async (ctx: NodeContext<typeof ports>): Promise<void> => ctx.promise("go");

test("a removed node that a run continues with blocks the run, and the restored code continues it", async () => {
  const ran: string[] = [];
  const define = (name: "second" | "renamed") =>
    graph("steps", { state: { seen: append<string>() }, ports })
      .node("first", async () => {
        ran.push("first");
        return { seen: ["first"] };
      })
      .node(name, async (ctx) => {
        await ctx.promise("go");
        return { seen: [name] };
      })
      .edge(START, "first")
      .edge("first", name);
  const right = define("second");
  using site = createSite();
  await site.begin(right);
  await site.deploy(define("renamed"), async (run) => {
    await run.resolve("go");
    const error = await stopOf(run);
    expect(error.details).toMatchObject({ where: "step 2", expected: "second", actual: ["first", "renamed"] });
    expect(error.message).toContain("the run continues with the node second, which graph steps no longer has");
    expect(error.message).toContain("its nodes are: first, renamed");
    const { entries } = await run.info();
    await run.resume();
    await stopOf(run);
    expect((await run.info()).entries).toBe(entries);
  });
  await site.deploy(right, async (run) => {
    await run.resume();
    expect(await run.result()).toEqual({ seen: ["first", "second"] });
  });
  expect(ran).toEqual(["first"]);
});

/** `fast` arrives at the join in step 1; the other way there waits in step 2. */
const branches = () =>
  graph("joins", { state: { seen: append<string>() }, ports })
    .node("fast", async () => ({ seen: ["fast"] }))
    .node("slow", async () => {})
    .node("waits", wait)
    .node("extra", async () => ({ seen: ["extra"] }));
const joined = (from: readonly ("fast" | "extra")[]) =>
  branches()
    .node("joined", async () => ({ seen: ["joined"] }))
    .edge(START, ["fast", "slow"])
    .edge("slow", "waits")
    .edge("waits", "extra")
    .join(from, "joined");

test("a removed join with arrivals blocks the run", async () => {
  const right = joined(["fast", "extra"]);
  const wrong = branches().edge(START, ["fast", "slow"]).edge("slow", "waits").edge("waits", "extra");
  using site = createSite();
  await site.begin(right);
  await site.deploy(wrong, async (run) => {
    await run.resolve("go");
    const error = await stopOf(run);
    expect(error.details).toMatchObject({ expected: "joined" });
    expect(error.message).toContain("nodes have arrived at the node joined");
  });
  await site.deploy(right, async (run) => {
    await run.resume();
    expect((await run.result()).seen).toEqual(["fast", "extra", "joined"]);
  });
});

test("a join whose list of nodes changed follows the current graph", async () => {
  const seenWith = async (after: ReturnType<typeof joined>): Promise<readonly string[]> => {
    let seen: readonly string[] = [];
    using site = createSite();
    await site.begin(joined(["fast", "extra"]));
    await site.deploy(after, async (run) => {
      await run.resolve("go");
      ({ seen } = await run.result());
    });
    return seen;
  };
  const noJoin = branches()
    .node("joined", async () => ({ seen: ["joined"] }))
    .edge(START, ["fast", "slow"])
    .edge("slow", "waits")
    .edge("waits", "extra");
  expect(await seenWith(joined(["fast", "extra"]))).toEqual(["fast", "extra", "joined"]);
  expect(await seenWith(joined(["fast"]))).toEqual(["fast", "extra", "joined"]);
  expect(await seenWith(noJoin)).toEqual(["fast", "extra", "joined"]);
});

test("an added channel starts with its initial value, and a removed one is hidden from nodes", async () => {
  const before = graph("grows", { state: { old: last("kept"), both: last(1) }, ports })
    .node("wait", wait)
    .node("end", async () => {})
    .edge(START, "wait")
    .edge("wait", "end");
  const seen: unknown[] = [];
  const after = graph("grows", { state: { both: last(1), added: append<string>(["first"]) }, ports })
    .node("wait", wait)
    .node("end", async (_ctx, state) => {
      seen.push({ ...state });
      return { added: ["second"] };
    })
    .edge(START, "wait")
    .edge("wait", "end");
  using site = createSite();
  await site.begin(before);
  await site.deploy(after, async (run) => {
    await run.resolve("go");
    expect(await run.result()).toEqual({ both: 1, added: ["first", "second"] });
  });
  expect(seen).toEqual([{ both: 1, added: ["first"] }]);
});

test("a recorded result that names a missing channel or node blocks the run; with the restored code no node runs again", async () => {
  let ran = 0;
  const says = async () => {
    ran += 1;
    return { goto: "next", change: { said: "yes" } } as never;
  };
  const define = <C extends string, N extends string>(channelName: C, node: N) =>
    graph("pair", { state: { [channelName]: last("") } as Record<C, ReturnType<typeof last<string>>>, ports })
      .node("says", says)
      .node("waits", wait)
      .node(node as string, async () => {})
      .edge(START, ["says", "waits"] as never)
      .edge("waits" as never, END);
  const right = define("said", "next");
  for (const [wrong, expected] of [
    [define("other", "next"), "said"],
    [define("said", "other"), "next"],
  ] as const) {
    ran = 0;
    using site = createSite();
    await site.begin(right);
    await site.deploy(wrong as Definition, async (run) => {
      await run.resolve("go" as never, undefined as never);
      expect((await stopOf(run)).details).toMatchObject({ expected });
    });
    await site.deploy(right as Definition, async (run) => {
      await run.resume();
      expect(await run.result()).toEqual({ said: "yes" });
    });
    expect(ran).toBe(1);
  }
});

test("a run continues from its checkpoint with the current edges, conditions and reducers", async () => {
  const define = (times: number, way: "left" | "right") =>
    graph("ways", { state: { n: channel(0, (sum: number, add: number) => sum + add * times), at: last("") }, ports })
      .node("wait", async (ctx) => {
        await ctx.promise("go");
        return { n: 1 };
      })
      .node("left", async () => ({ at: "left" }))
      .node("right", async () => ({ at: "right" }))
      .edge(START, "wait")
      .edge("wait", way);
  using site = createSite();
  await site.begin(define(1, "left"));
  await site.deploy(define(10, "right"), async (run) => {
    await run.resolve("go");
    expect(await run.result()).toEqual({ n: 10, at: "right" });
  });
});
