// Keys: the limits per key of a queue hold for the nodes of a flow and for the items of a spread.

import { expect, test } from "vitest";
import { aesGcm, flow, queue, task, typed } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

interface Letter {
  readonly to: string;
  readonly n: number;
}

const mail = queue("mail", { perKey: { concurrency: 2 } });

/** Counts how many run at the same time, per key and in all. */
class Meter {
  readonly most = new Map<string, number>();
  readonly calls: number[] = [];
  mostOfAll = 0;
  readonly #atWork = new Map<string, number>();

  async run({ to, n }: Letter): Promise<number> {
    this.calls.push(n);
    this.#count(to, 1);
    await new Promise((resolve) => setImmediate(resolve));
    this.#count(to, -1);
    return n;
  }

  #count(to: string, by: number): void {
    const of = (this.#atWork.get(to) ?? 0) + by;
    this.#atWork.set(to, of);
    this.most.set(to, Math.max(this.most.get(to) ?? 0, of));
    const all = [...this.#atWork.values()].reduce((sum, count) => sum + count, 0);
    this.mostOfAll = Math.max(this.mostOfAll, all);
  }
}

/** `"aab"`: three letters to a, a and b. */
function lettersTo(names: string): readonly Letter[] {
  return [...names].map((to, n) => ({ to, n }));
}

function numbers(count: number): readonly number[] {
  return Array.from({ length: count }, (_, n) => n);
}

test("at most as many items of a spread run at once per key as their queue allows", async () => {
  const meter = new Meter();
  const send = task("send", { queue: mail, key: ({ to }: Letter) => to }, (_ctx, letter: Letter) => meter.run(letter));
  const all = flow("all", { input: typed<string>() })
    .spread("sent", ["input"], ({ input }) => lettersTo(input), send)
    .output(["sent"], ({ sent }) => sent);
  await using engine = await createTestEngine({ definitions: [all, send], worker: { concurrency: 16 } });
  const names = "abc".repeat(20);
  const run = await engine.start(all, names);
  expect(await run.result()).toEqual(numbers(60));
  expect(Object.fromEntries(meter.most)).toEqual({ a: 2, b: 2, c: 2 });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("items that wait for a busy key do not keep other keys waiting, however many they are", async () => {
  const gate = createGate();
  const free = createGate();
  let left = 5;
  const send = task("send", { queue: mail, key: ({ to }: Letter) => to }, async (_ctx, { to, n }: Letter) => {
    if (to === "busy") await gate.wait();
    else if (--left === 0) free.open();
    return n;
  });
  const all = flow("all", { input: typed<number>() })
    .spread(
      "sent",
      ["input"],
      ({ input }) => numbers(input + 5).map((n) => ({ to: n < input ? "busy" : `free ${n % 2}`, n })),
      send,
    )
    .output(["sent"], ({ sent }) => sent.length);
  await using engine = await createTestEngine({ definitions: [all, send] });
  // More than a spread without keys queues at once.
  const run = await engine.start(all, 1_100);
  await gate.reached;
  await free.opened;
  await run.terminate("seen");
  gate.open();
});

test("a rate per key spaces the items of a key, and no others", async () => {
  const slow = queue("slow", { perKey: { rate: { limit: 1, per: "1 minute" } } });
  const sent: string[] = [];
  const send = task("send", { queue: slow, key: ({ to }: Letter) => to }, (_ctx, { to }: Letter) => sent.push(to));
  const all = flow("all", { input: typed<string>() })
    .spread("sent", ["input"], ({ input }) => lettersTo(input), send)
    .output(["sent"], () => "sent");
  await using engine = await createTestEngine({ definitions: [all, send] });
  const run = await engine.start(all, "aaab");
  await engine.clock.advance(1_000);
  expect(sent.toSorted()).toEqual(["a", "b"]);
  await engine.clock.advance("1 minute");
  expect(sent.toSorted()).toEqual(["a", "a", "b"]);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe("sent");
});

test("a call of a task with a key, and an action with `key`, wait for a slot of their key", async () => {
  const one = queue("one", { perKey: { concurrency: 1 } });
  for (const kind of ["call", "action"] as const) {
    const gate = createGate();
    const begun: string[] = [];
    const work = async (letter: Letter): Promise<string> => {
      begun.push(`${letter.to}${letter.n}`);
      if (letter.n === 0) await gate.wait();
      return letter.to;
    };
    const send = task("send", { queue: one, key: ({ to }: Letter) => to }, (_ctx, letter: Letter) => work(letter));
    const input = typed<Letter>();
    const single =
      kind === "call"
        ? flow("single", { input })
            .inline("next", ["input"], (given) => given.input)
            .call("sent", ["input", "next"], send, ({ next }) => next)
            .output(["sent"], ({ sent }) => sent)
        : flow("single", { input })
            .action("sent", ["input"], { queue: one, key: (given) => given.input.to }, (_ctx, given) =>
              work(given.input),
            )
            .output(["sent"], ({ sent }) => sent);
    await using engine = await createTestEngine({ definitions: [single, send] });
    const first = await engine.start(single, { to: "a", n: 0 });
    await gate.reached;
    const second = await engine.start(single, { to: "a", n: 1 });
    expect(await (await engine.start(single, { to: "b", n: 2 })).result()).toBe("b");
    expect([kind, begun]).toEqual([kind, ["a0", "b2"]]);
    expect(await engine.findQueue(one)).toMatchObject({ ready: 1, leased: 1 });
    gate.open();
    expect([await first.result(), await second.result(), begun]).toEqual(["a", "a", ["a0", "b2", "a1"]]);
    expect(await second.verify()).toMatchObject({ status: "same" });
  }
});

test("`concurrency` of a spread and the limit per key both hold", async () => {
  const meter = new Meter();
  const all = flow("all", { input: typed<string>() })
    .spread(
      "sent",
      ["input"],
      { concurrency: 3, queue: mail, key: ({ to }: Letter) => to },
      ({ input }) => lettersTo(input),
      (_ctx, letter) => meter.run(letter),
    )
    .output(["sent"], ({ sent }) => sent.length);
  await using engine = await createTestEngine({ definitions: [all], worker: { concurrency: 16 } });
  expect(await (await engine.start(all, "aaaabbbbcccc".repeat(3))).result()).toBe(36);
  expect(Math.max(...meter.most.values())).toBeLessThanOrEqual(2);
  expect(meter.mostOfAll).toBeLessThanOrEqual(3);
});

test("workers with the label of a node with a key claim it, also after a retry", async () => {
  let broken = true;
  const send = task("send", { queue: mail, key: ({ to }: Letter) => to, label: "gpu" }, (_ctx, { n }: Letter) => {
    if (broken && n === 3) throw new Error("3 is broken");
    return n;
  });
  const all = flow("all", { input: typed<string>() })
    .spread("sent", ["input"], ({ input }) => lettersTo(input), send)
    .call("last", ["sent"], send, ({ sent }) => ({ to: "a", n: sent.length }))
    .output(["last"], ({ last }) => last);
  await using engine = await createTestEngine({ definitions: [all, send], worker: { labels: ["gpu"] } });
  const run = await engine.start(all, "aab");
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "3 is broken" } });
  broken = false;
  await run.retry();
  expect(await run.result()).toBe(3);
});

for (const [what, key, expected] of [
  [
    "throws",
    () => JSON.parse("{") as string,
    { code: "BAD_FLOW", message: /item 2 of sent: its `key` function threw: .*JSON/ },
  ],
  [
    "returns no string",
    () => 7 as never as string,
    { code: "BAD_NAME", message: /item 2 of sent: key: expected a string/ },
  ],
] as const)
  test(`a key function that ${what} fails its spread before anything of it is queued, and a retry repeats it`, async () => {
    let broken = true;
    let calls = 0;
    const send = task(
      "send",
      { queue: mail, key: ({ to, n }: Letter) => (broken && n === 2 ? key() : to) },
      () => (calls += 1),
    );
    const all = flow("all", { input: typed<string>() })
      .spread("sent", ["input"], { settle: true }, ({ input }) => lettersTo(input), send)
      .output(["sent"], ({ sent }) => sent.length);
    await using engine = await createTestEngine({ definitions: [all, send] });
    const run = await engine.start(all, "abcd");
    const { message, code } = expected;
    expect(await rejection(run.result())).toMatchObject({
      code: "RUN_FAILED",
      cause: { code, message: expect.stringMatching(message) as string },
    });
    const types = [];
    for await (const { type, command } of run.journal()) types.push(`${type} ${command ?? ""}`.trim());
    expect(types).toEqual(["RunStarted", "NodeFailed sent[]", "RunFailed"]);
    broken = false;
    await run.retry();
    expect([await run.result(), calls]).toEqual([4, 4]);
  });

test("a key function that throws fails an action and a call, and only its item of a spread with `concurrency`", async () => {
  const key = ({ to }: Letter): string => {
    if (to === "x") throw new Error("no key for x");
    return to;
  };
  const send = task("send", { queue: mail, key }, (_ctx, { n }: Letter) => n);
  const called = flow("called", { input: typed<string>() })
    .call("sent", ["input"], send, ({ input }) => ({ to: input, n: 1 }))
    .output(["sent"], ({ sent }) => sent);
  const acted = flow("acted", { input: typed<string>() })
    .action("sent", ["input"], { queue: mail, key: ({ input }) => key({ to: input, n: 1 }) }, () => 1)
    .output(["sent"], ({ sent }) => sent);
  const each = flow("each", { input: typed<string>() })
    .spread("sent", ["input"], { concurrency: 2, settle: true }, ({ input }) => lettersTo(input), send)
    .output(["sent"], ({ sent }) => sent.map(({ status }) => status));
  await using engine = await createTestEngine({ definitions: [called, acted, each, send] });
  for (const single of [called, acted])
    expect(await rejection((await engine.start(single, "x")).result())).toMatchObject({
      cause: { code: "BAD_FLOW", message: expect.stringMatching(/node sent: .*no key for x/) as string },
    });
  expect(await (await engine.start(each, "axb")).result()).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("an item that the schema of its task refuses fails alone, as without a key", async () => {
  const letter = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value: unknown) =>
        (value as Letter).to === "x" ? { issues: [{ message: "x has moved" }] } : { value },
    },
  } as const;
  const input = letter as never as ReturnType<typeof typed<Letter>>;
  const send = task("send", { input, queue: mail, key: ({ to }) => to }, (_ctx, { n }) => n);
  const all = flow("all", { input: typed<string>() })
    .spread("sent", ["input"], { settle: true }, (given) => lettersTo(given.input), send)
    .output(["sent"], ({ sent }) => sent.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message)));
  await using engine = await createTestEngine({ definitions: [all, send] });
  const output = (await (await engine.start(all, "axb")).result()) as readonly unknown[];
  expect(output).toEqual([0, expect.stringMatching(/x has moved/), 2]);
});

/** An entry holds one item with a text of this length, and a commit queues the items of 16 entries. */
const LONG = "x".repeat(33_000);

/** A flow that calls `at` before each item; its 40 items are queued by three commits. */
function threePortions(meter: Meter, at: (n: number) => unknown) {
  const send = task("send", { queue: mail, key: ({ to }: Letter) => to }, async (_ctx, letter: Letter) => {
    await at(letter.n);
    return meter.run(letter);
  });
  const all = flow("all", { input: typed<void>() })
    .spread("sent", ["input"], () => numbers(40).map((n) => ({ to: `k${n % 5}`, n, text: LONG })), send)
    .output(["sent"], ({ sent }) => sent.length);
  return { all, send };
}

test("a spread with keys continues with encrypted payloads after a crash", async () => {
  const meter = new Meter();
  const reached = createGate();
  const { all, send } = threePortions(meter, (n) => n === 9 && reached.open());
  const codec = aesGcm({ keys: { k1: Buffer.alloc(32, 7) }, current: "k1" });
  await using engine = await createTestEngine({ definitions: [all, send], codec });
  const run = await engine.start(all, undefined);
  await reached.opened;
  await engine.crash();
  expect(await run.result()).toBe(40);
  expect(new Set(meter.calls).size).toBe(40);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retried spread with keys queues what was left, keeps its results, and keeps the limit per key", async () => {
  const meter = new Meter();
  let broken = true;
  const { all, send } = threePortions(meter, (n) => {
    if (broken && n === 7) throw new Error("7 is broken");
  });
  await using engine = await createTestEngine({ definitions: [all, send], worker: { concurrency: 20 } });
  const run = await engine.start(all, undefined);
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "7 is broken" } });
  broken = false;
  await run.retry();
  expect(await run.result()).toBe(40);
  expect(new Set(meter.calls).size).toBe(40);
  expect(Math.max(...meter.most.values())).toBeLessThanOrEqual(2);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a paused spread with keys starts no item until it is resumed", async () => {
  const meter = new Meter();
  const gate = createGate();
  const { all, send } = threePortions(meter, (n) => n === 3 && gate.wait());
  await using engine = await createTestEngine({ definitions: [all, send], worker: { concurrency: 1 } });
  const run = await engine.start(all, undefined);
  await gate.reached;
  await run.pause();
  const before = meter.calls.length;
  gate.open();
  await engine.clock.advance("1 hour");
  // The item that had started ends.
  expect(meter.calls.slice(before)).toEqual([3]);
  await run.resume();
  expect(await run.result()).toBe(40);
});

test("the claim that moves a node into the queue of its key is not an execution of its code", async () => {
  const gate = createGate();
  const executions: number[] = [];
  const single = flow("single", { input: typed<Letter>() })
    .action("sent", ["input"], { queue: mail, key: ({ input }) => input.to }, async (ctx) => {
      executions.push(ctx.execution);
      if (executions.length === 1) await gate.wait();
    })
    .output(["sent"], () => "sent");
  await using engine = await createTestEngine({ definitions: [single] });
  const run = await engine.start(single, { to: "a", n: 0 });
  await gate.reached;
  await engine.crash();
  expect(await run.result()).toBe("sent");
  expect(executions).toEqual([1, 2]);
  gate.open();
});
