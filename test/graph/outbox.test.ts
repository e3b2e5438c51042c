// Outbox of graphs: the messages of a node are part of the commit of its result.

import { expect, test } from "vitest";
import { append, END, goto, graph, last, START } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createGate, rejection, storeAround, type AnyWrite } from "../engine/world.ts";

interface Arrived {
  readonly payload: unknown;
  readonly key: string;
}
function ledger(): { readonly arrived: Arrived[]; readonly mail: (payload: unknown, key: string) => Promise<void> } {
  const arrived: Arrived[] = [];
  return { arrived, mail: async (payload, key) => void arrived.push({ payload, key }) };
}
const payloadsOf = (arrived: readonly Arrived[]): unknown[] => arrived.map(({ payload }) => payload);
const unchanged = () => storeAround((_writes, apply) => apply());

type Turn = Extract<AnyWrite, { write: "turn" }>;
const turnsOf = (writes: readonly AnyWrite[]): readonly Turn[] => writes.filter((one) => one.write === "turn");

test("outbox atomicity: a message and the result of the node that sent it are one commit, with its outbox row", async () => {
  const turns: Turn[] = [];
  const source = storeAround((writes, apply) => {
    turns.push(...turnsOf(writes));
    return apply();
  });
  const g = graph("letters", { state: { sent: append<string>() } })
    .node("write", async (ctx, _state, name: string) => {
      ctx.send("mail", { to: name });
      await ctx.run("think", () => name);
      ctx.send("mail", { again: name });
      return { sent: [name] };
    })
    .spread(START, "write", () => ["ann", "bob", "eve"]);
  const { arrived, mail } = ledger();
  await using engine = await createTestEngine({ definitions: [g], store: source, outbox: { mail } });
  const run = await engine.start(g, {});
  await run.result();
  await engine.clock.advance(0);
  for (const position of [0, 1, 2]) {
    const node = `Node(1.${position})`;
    const [turn] = turns.filter(({ entries }) => entries.some(({ command }) => command === node));
    const sent = turn!.entries.filter(({ command }) => command.startsWith(`${node}#0/Message`));
    expect(sent.map(({ type, command }) => `${type} ${command}`)).toEqual(
      [0, 1].map((call) => `MessageSent ${node}#0/Message(${call})`),
    );
    expect(sent.every(({ seq }) => turn!.outgoing.some((row) => row.seq === seq))).toBe(true);
  }
  expect(payloadsOf(arrived)).toHaveLength(6);
  expect(new Set(arrived.map(({ key }) => key)).size).toBe(6);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("an attempt that fails sends nothing; the one that succeeds sends under the keys every attempt would have used", async () => {
  const keysOf = async (failures: number): Promise<readonly Arrived[]> => {
    const { arrived, mail } = ledger();
    const g = graph("flaky", { state: {} })
      .node("send", { retry: { maxAttempts: 5, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
        ctx.send("mail", "first");
        ctx.send("mail", "second");
        if (ctx.attempt <= failures) throw new Error("again");
      })
      .edge(START, "send");
    await using engine = await createTestEngine({ definitions: [g], outbox: { mail } });
    const run = await engine.start(g, {}, { id: "r" });
    await engine.clock.advance("1 s");
    await run.result();
    await engine.clock.advance(0);
    return arrived;
  };
  const at = await keysOf(0);
  expect(payloadsOf(at)).toEqual(["first", "second"]);
  expect(await keysOf(3)).toEqual(at);
});

test("a node that is aborted, cancelled or fails its last attempt sends nothing, and after a retry sends once, under the same key", async () => {
  const { arrived, mail } = ledger();
  let broken = true;
  const gate = createGate();
  const g = graph("pair", { state: {} })
    .node("aborted", async (ctx) => {
      ctx.send("mail", "from aborted");
      if (!broken) return;
      await new Promise((_resolve, reject) => {
        ctx.abortSignal.addEventListener("abort", () => reject(new Error("stopped")));
        void gate.wait();
      });
    })
    .node("breaks", async (ctx) => {
      ctx.send("mail", "from breaks");
      if (!broken) return;
      await gate.reached;
      throw new Error("broken");
    })
    .edge(START, ["aborted", "breaks"]);
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source, outbox: { mail } });
  const run = await engine.start(g, {}, { id: "r" });
  await rejection(run.result());
  await engine.clock.advance("1 s");
  expect(arrived).toEqual([]);
  broken = false;
  await run.retry();
  await run.result();
  await engine.clock.advance("1 s");
  expect(payloadsOf(arrived).toSorted()).toEqual(["from aborted", "from breaks"]);
  const undisturbed = ledger();
  await using other = await createTestEngine({ definitions: [g], outbox: { mail: undisturbed.mail } });
  await (await other.start(g, {}, { id: "r" })).result();
  await other.clock.advance("1 s");
  const byPayload = (list: readonly Arrived[]) =>
    list.toSorted((a, b) => (String(a.payload) < String(b.payload) ? -1 : 1));
  expect(byPayload(arrived)).toEqual(byPayload(undisturbed.arrived));
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("a message that is not data, or is sent inside a step, fails its node and nothing is sent", async () => {
  const { arrived, mail } = ledger();
  const wrong = graph("wrong", { state: {} })
    .node("send", async (ctx) => {
      ctx.send("mail", "fine");
      ctx.send("mail", { deep: { fn: () => 1 } });
    })
    .edge(START, "send");
  const inside = graph("inside", { state: {} })
    .node("send", async (ctx) => {
      await ctx.run("step", () => ctx.send("mail", "inside"));
    })
    .edge(START, "send");
  await using engine = await createTestEngine({ definitions: [wrong, inside], outbox: { mail } });
  const notData = await rejection((await engine.start(wrong, {})).result());
  expect((notData.cause as Error).message).toContain("deep.fn");
  expect(await rejection((await engine.start(inside, {})).result())).toMatchObject({ cause: { code: "USAGE" } });
  await engine.clock.advance("1 s");
  expect(arrived).toEqual([]);
});

test("outbox crash consistency: killed at every commit, each message of each node arrives under one key, and no other", async () => {
  const received = new Map<string, unknown>();
  const g = graph("posts", { state: { round: last(0) } })
    .node("fan", async () => {})
    .node("each", { retry: { maxAttempts: 2, baseDelay: 10, maxDelay: 10 } }, async (ctx, state, name: string) => {
      ctx.send("mail", `${name} of ${state.round}`);
      await ctx.run("write", () => name);
      if (name === "bob" && ctx.attempt === 1) throw new Error("once");
      ctx.send("mail", `${name} again of ${state.round}`);
    })
    .node("count", async (ctx, state) => {
      ctx.send("mail", `round ${state.round} is over`);
      return state.round === 1 ? goto(END, { round: 2 }) : goto("fan", { round: state.round + 1 });
    })
    .edge(START, "fan")
    .spread("fan", "each", () => ["ann", "bob"])
    .join(["each"], "count");
  const { output, crashes } = await crashEverywhere(
    g,
    {},
    {
      outbox: {
        mail: async (payload, key) => {
          if (received.has(key) && received.get(key) !== payload) throw new Error(`two messages under ${key}`);
          received.set(key, payload);
        },
      },
    },
  );
  expect(output).toEqual({ round: 2 });
  expect(crashes).toBeGreaterThan(20);
  // All trials have the same run id, so the same keys: nothing came under another one in any of them.
  const expected = [0, 1].flatMap((round) => [
    `ann of ${round}`,
    `ann again of ${round}`,
    `bob of ${round}`,
    `bob again of ${round}`,
    `round ${round} is over`,
  ]);
  expect([...received.values()].map(String).toSorted()).toEqual(expected.toSorted());
}, 120_000);

test("messages of a graph are delivered in the order of its steps, and within a node in the order it sent them", async () => {
  const { arrived, mail } = ledger();
  const g = graph("steps", { state: { n: last(0) } })
    .node("say", async (ctx, state) => {
      ctx.send("mail", `${state.n}a`);
      ctx.send("mail", `${state.n}b`);
      return { n: state.n + 1 };
    })
    .edge(START, "say")
    .edge("say", END, (state) => state.n === 3)
    .edge("say", "say");
  await using engine = await createTestEngine({ definitions: [g], outbox: { mail } });
  const run = await engine.start(g, {});
  await run.result();
  await engine.clock.advance("1 s");
  expect(payloadsOf(arrived)).toEqual(["0a", "0b", "1a", "1b", "2a", "2b"]);
  expect((await collect(run.journal())).filter(({ type }) => type === "MessageSent")).toHaveLength(6);
});

test("a fork sends the messages of its own steps, under its own keys; earlier messages are not sent again", async () => {
  const { arrived, mail } = ledger();
  const g = graph("forks", { state: { n: last(0) } })
    .node("one", async (ctx) => {
      ctx.send("mail", "one");
      return { n: 1 };
    })
    .node("two", async (ctx) => {
      ctx.send("mail", "two");
      return { n: 2 };
    })
    .edge(START, "one")
    .edge("one", "two");
  await using engine = await createTestEngine({ definitions: [g], outbox: { mail } });
  const run = await engine.start(g, {});
  await run.result();
  const fork = await run.fork({ step: 1 });
  await fork.result();
  await engine.clock.advance("1 s");
  expect(payloadsOf(arrived)).toEqual(["one", "two", "two"]);
  expect(new Set(arrived.map(({ key }) => key)).size).toBe(3);
});
