// Results of pure steps that another site computed: two sites with a store and a home each, and a folder between them.

import { describe, expect, test } from "vitest";
import { aesGcm, createEngine, flow, task, typed, workflow, type AnyTask, type Definition } from "reprise";
import { canonicalJson, encode, valueKey } from "../../../src/base/index.ts";
import { openStoreOf } from "../../../src/engine/index.ts";
import { contentOf } from "../../../src/federation/log/content.ts";
import { appendOwn } from "../../../src/federation/sync/own-log.ts";
import type { PublicationRule } from "../../../src/federation/sync/publish.ts";
import { MEMO_ANSWER_TYPE } from "../../../src/federation/home/facts.ts";
import { FederatedMemos } from "../../../src/federation/work/federated-memos.ts";
import { memoEnd, readMemoAnswer, type MemoAnswer } from "../../../src/federation/work/memo-answer.ts";
import type { ForeignMemos } from "../../../src/worker/index.ts";
import { claimIn, claimOf } from "./claims.ts";
import { folderCarrier, Site, type SiteOptions } from "../sync/site.ts";

/** A program of pure steps of every kind; `calls` notes each that is executed. */
function programAt(compute: (n: number) => unknown = (n) => n * 2, pure = "1") {
  const calls: string[] = [];
  const note = (name: string, n: number): unknown => {
    calls.push(`${name} ${n}`);
    return compute(n);
  };
  const square = task("square", { pure }, (_, n: number) => note("square", n));
  const work = workflow("work", async (ctx, n: number) => [
    await ctx.run("double", { n }, () => note("double", n), { pure }),
    await ctx.task(square, n),
  ]);
  const parts = flow("parts", { input: typed<number>() })
    .action("part", ["input"], { pure }, (_, { input }) => note("part", input))
    .output(["part"], ({ part }) => part);
  return { work, parts, calls, definitions: [square, work, parts] };
}

type Program = ReturnType<typeof programAt>;

const TO_ALL: readonly PublicationRule[] = [{ to: ["*"], payloads: "full" }];

function siteOf(name: string, { definitions }: Program, options: SiteOptions = {}): Site {
  return new Site(name, { rules: TO_ALL, ...options, definitions });
}

function memosAt(site: Site, trusted: readonly Site[], sample = 0) {
  const reports: string[] = [];
  const asked: string[] = [];
  const memos = new FederatedMemos({
    home: site.home,
    own: site.origin,
    trusted: new Map(trusted.map(({ origin }) => [origin, { sample }])),
    report: (message) => reports.push(message),
  });
  const noting: ForeignMemos = {
    ask: (questions) => (asked.push(...questions.map(({ memo }) => memo)), memos.ask(questions)),
    compare: (sampled) => memos.compare(sampled),
  };
  return { memos, noting, reports, asked };
}

async function engineAt(site: Site, program: Program, memos: ForeignMemos, codec?: SiteOptions["codec"]) {
  await site.store();
  return createEngine({
    store: `sqlite:${site.file}`,
    definitions: program.definitions as readonly (Definition | AnyTask)[],
    memos,
    logger: false,
    ...(codec && { codec }),
  });
}

/** What the first site publishes arrives at the second. */
async function send(from: Site, to: Site): Promise<void> {
  const carrier = await folderCarrier();
  await from.sync(carrier, to.name);
  to.admit(from);
  await to.pull(carrier);
}

describe("a pure step that a trusted peer has executed", () => {
  test("is not executed: the entry says reused, and no replay asks again", async () => {
    const [first, second] = [programAt(), programAt()];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await edge.run(first.parts, { p: 4 });
    expect(first.calls.toSorted()).toEqual(["double 4", "part 4", "square 4"]);
    await send(edge, hub);
    const { noting, asked } = memosAt(hub, [edge]);
    await using engine = await engineAt(hub, second, noting);
    const work = await engine.start(second.work, 4, { id: "w2" });
    expect(await work.result()).toEqual([8, 8]);
    expect(await (await engine.start(second.parts, 4, { id: "p2" })).result()).toBe(8);
    expect(second.calls).toEqual([]);
    const entries = await openStoreOf(engine)!.readJournal((await openStoreOf(engine)!.findRun("w2"))!.run, 0);
    expect(entries.filter(({ data }) => data.includes('"reused":')).map(({ type }) => type)).toEqual([
      "OperationCompleted",
      "TaskCompleted",
    ]);
    expect(asked).toHaveLength(3);
    expect(await work.replay()).toMatchObject({ status: "same" });
    expect(asked).toHaveLength(3);
    expect(second.calls).toEqual([]);
    expect(await claimOf(engine, "w2")).toBe(await claimIn(await edge.store(), "w"));
    expect(await claimOf(engine, "p2")).toBe(await claimIn(await edge.store(), "p"));
    // Another input is executed.
    expect(await (await engine.start(second.work, 5, { id: "w3" })).result()).toEqual([10, 10]);
    expect(second.calls).toEqual(["double 5", "square 5"]);
  });

  test("is executed in another version", async () => {
    const [first, second] = [programAt(), programAt((n) => n * 3, "2")];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    await using engine = await engineAt(hub, second, memosAt(hub, [edge]).noting);
    expect(await (await engine.start(second.work, 4, { id: "w2" })).result()).toEqual([12, 12]);
    expect(second.calls).toEqual(["double 4", "square 4"]);
  });

  test("is executed if the home cannot be read", async () => {
    const program = programAt();
    const hub = siteOf("hub", program);
    const memos: ForeignMemos = {
      ask: () => Promise.reject(new Error("The home is closed.")),
      compare: () => {},
    };
    await using engine = await engineAt(hub, program, memos);
    expect(await (await engine.start(program.work, 4, { id: "w2" })).result()).toEqual([8, 8]);
  });
});

describe("an answer is not used", () => {
  const cases: readonly { readonly why: string; readonly edge?: SiteOptions; readonly trusts: boolean }[] = [
    { why: "of a peer that is not trusted", trusts: false },
    { why: "that no rule publishes", edge: { rules: [] }, trusts: true },
    {
      why: "whose run is published without payloads",
      edge: { rules: [{ to: ["*"], payloads: "hash-only" }] },
      trusts: true,
    },
    {
      why: "whose definition no rule publishes",
      edge: { rules: [{ to: ["*"], definitions: ["other"], payloads: "full" }] },
      trusts: true,
    },
  ];
  test.each(cases)("$why", async ({ edge: options, trusts }) => {
    const [first, second] = [programAt(), programAt()];
    const [edge, hub] = [siteOf("edge", first, options), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    await using engine = await engineAt(hub, second, memosAt(hub, trusts ? [edge] : []).noting);
    await (await engine.start(second.work, 4, { id: "w2" })).result();
    expect(second.calls).toEqual(["double 4", "square 4"]);
  });

  test("if the store has a codec: it asks nobody and tells nobody", async () => {
    const codec = aesGcm({ keys: { k: Buffer.alloc(32, 7) }, current: "k" });
    const [first, second] = [programAt(), programAt()];
    const [edge, hub] = [siteOf("edge", first, { codec }), siteOf("hub", second, { codec })];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    expect(hub.home.scan({ type: MEMO_ANSWER_TYPE })).toEqual([]);
    const { noting, asked } = memosAt(hub, [edge]);
    await using engine = await engineAt(hub, second, noting, codec);
    await (await engine.start(second.work, 4, { id: "w2" })).result();
    expect(asked).toEqual([]);
    expect(second.calls).toEqual(["double 4", "square 4"]);
  });

  test("after its origin has withdrawn it with a tombstone", async () => {
    const [first, second] = [programAt(), programAt()];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await edge.take();
    const answers = edge.home.scan({ type: MEMO_ANSWER_TYPE });
    expect(answers).toHaveLength(2);
    await appendOwn(await edge.store(), edge.key, async () => ({
      records: answers.map(({ key }) => ({ body: { op: "tomb", x: `a:${key}` } })),
    }));
    await send(edge, hub);
    await using engine = await engineAt(hub, second, memosAt(hub, [edge]).noting);
    await (await engine.start(second.work, 4, { id: "w2" })).result();
    expect(second.calls).toEqual(["double 4", "square 4"]);
  });
});

describe("a poisoned answer of a trusted peer", () => {
  /** The edge puts an answer into its log that it changed by hand. */
  async function poison(change: (answer: MemoAnswer) => object) {
    const [first, second] = [programAt(), programAt()];
    const [edge, hub] = [siteOf("edge", first, { rules: [] }), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    const store = await edge.store();
    const { groups } = await store.listMemos({ limit: 10 });
    const honest = groups.map(({ memo, rows: [row] }): MemoAnswer => ({
      memo,
      value: "8",
      origin: edge.origin,
      run: row!.runId,
      definition: "work",
      tags: [],
      runtime: row!.by,
      nonce: "00",
      v: 1,
    }));
    await store.clearMemos("all");
    const contents = honest.map((answer) => contentOf(MEMO_ANSWER_TYPE, canonicalJson(change(answer))));
    edge.home.putContents(contents);
    await appendOwn(store, edge.key, async () => ({
      records: contents.map(({ key }) => ({ body: { op: "put", k: key } })),
    }));
    edge.rules = TO_ALL;
    await send(edge, hub);
    const memos = memosAt(hub, [edge]);
    await using engine = await engineAt(hub, second, memos.noting);
    const result = await (await engine.start(second.work, 4, { id: "w2" })).result();
    return { result, calls: second.calls, hub, memos };
  }

  test("is used if it is well formed: trust means that", async () => {
    expect(await poison((answer) => ({ ...answer, value: "666" }))).toMatchObject({ result: [666, 666], calls: [] });
  });

  test.each([
    { what: "a text that is not canonical", change: () => ({ value: " 666" }) },
    { what: "a text that cannot be decoded", change: () => ({ value: "{" }) },
    { what: "another origin", change: () => ({ value: "666", origin: "bank/0123456789abcdef" }) },
    { what: "another version", change: () => ({ value: "666", v: 2 }) },
    { what: "another memo", change: () => ({ value: "666", memo: valueKey("1") }) },
  ])("with $what is not used", async ({ change }) => {
    const { result, calls } = await poison((answer) => ({ ...answer, ...change() }));
    expect(result).toEqual([8, 8]);
    expect(calls).toEqual(["double 4", "square 4"]);
  });
});

test("an answer of a peer that is not trusted is not used beside one that is, nor if it names the other as its origin", async () => {
  const [first, second] = [programAt(() => 666), programAt()];
  const [lab, mallory, hub] = [siteOf("lab", programAt()), siteOf("mallory", first), siteOf("hub", second)];
  await mallory.run(first.work, { w: 4 });
  await mallory.take();
  const store = await mallory.store();
  const forged = mallory.home.scan({ type: MEMO_ANSWER_TYPE }).map(({ key }) => {
    const answer = readMemoAnswer(mallory.home.content(key)!)!;
    return contentOf(MEMO_ANSWER_TYPE, canonicalJson({ ...answer, origin: lab.origin }));
  });
  expect(forged).toHaveLength(2);
  mallory.home.putContents(forged);
  await appendOwn(store, mallory.key, async () => ({
    records: forged.map(({ key }) => ({ body: { op: "put", k: key } })),
  }));
  await send(mallory, hub);
  await send(lab, hub);
  expect(hub.home.scan({ type: MEMO_ANSWER_TYPE })).toHaveLength(4);
  await using engine = await engineAt(hub, second, memosAt(hub, [lab]).noting);
  expect(await (await engine.start(second.work, 4, { id: "w2" })).result()).toEqual([8, 8]);
  expect(second.calls).toEqual(["double 4", "square 4"]);
  expect(hub.home.conflicts()).toEqual([]);
});

describe("different results of one pure step", () => {
  test("that a sample finds are a conflict with both sites and runtimes, and switch the memo off", async () => {
    const [first, second] = [programAt(() => "here"), programAt(() => "there")];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    const { memos, noting, reports } = memosAt(hub, [edge], 1);
    await using engine = await engineAt(hub, second, noting);
    expect(await (await engine.start(second.work, 4, { id: "w2" })).result()).toEqual(["there", "there"]);
    expect(memos.samples).toEqual({ equal: 0, different: 2 });
    const conflicts = hub.home.conflicts({ kind: "divergence" });
    expect(conflicts).toHaveLength(2);
    for (const { cell, evidence } of conflicts) {
      expect(cell).toMatch(/^memo:[0-9a-f]{64}$/);
      expect(evidence).toMatchObject({
        answers: [
          { origin: edge.origin, value: valueKey(encode("here")), run: "w", runtime: expect.stringContaining("node") },
          { origin: hub.origin, value: valueKey(encode("there")), run: "w2", runtime: expect.stringContaining("node") },
        ],
      });
    }
    expect(reports).toHaveLength(2);
    // Off: also what this site itself knows is executed again.
    await (await engine.start(second.work, 4, { id: "w3" })).result();
    expect(second.calls).toEqual(["double 4", "square 4", "double 4", "square 4"]);
  });

  test("stay a conflict that switches the memo off after the peer has withdrawn its answer, until it is resolved", async () => {
    const [first, second] = [programAt(() => "here"), programAt(() => "there")];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    await using engine = await engineAt(hub, second, memosAt(hub, [edge], 1).noting);
    await (await engine.start(second.work, 4, { id: "w2" })).result();
    const answers = edge.home.scan({ type: MEMO_ANSWER_TYPE });
    await appendOwn(await edge.store(), edge.key, async () => ({
      records: answers.map(({ key }) => ({ body: { op: "tomb", x: `a:${key}` } })),
    }));
    await send(edge, hub);
    expect(hub.home.scan({ type: MEMO_ANSWER_TYPE })).toEqual([]);
    await (await engine.start(second.work, 4, { id: "w3" })).result();
    expect(second.calls).toHaveLength(4);
    for (const { id } of hub.home.conflicts()) hub.home.resolve(id, "the edge was wrong");
    await (await engine.start(second.work, 4, { id: "w4" })).result();
    expect(second.calls).toHaveLength(4);
  });

  test("that equal samples confirm are remembered here", async () => {
    const [first, second] = [programAt(), programAt()];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    const { memos, noting } = memosAt(hub, [edge], 1);
    await using engine = await engineAt(hub, second, noting);
    await (await engine.start(second.work, 4, { id: "w2" })).result();
    await (await engine.start(second.work, 4, { id: "w3" })).result();
    expect(memos.samples).toEqual({ equal: 2, different: 0 });
    expect(second.calls).toEqual(["double 4", "square 4"]);
    expect(hub.home.conflicts()).toEqual([]);
  });

  test("of two trusted peers are used by nobody, and one of them if the operator says so", async () => {
    const [a, b, c] = [programAt(() => "a"), programAt(() => "b"), programAt(() => "c")];
    const [edge, lab, hub] = [siteOf("edge", a), siteOf("lab", b), siteOf("hub", c)];
    await edge.run(a.work, { w: 4 });
    await lab.run(b.work, { w: 4 });
    await send(edge, hub);
    await send(lab, hub);
    const { noting } = memosAt(hub, [edge, lab]);
    await using engine = await engineAt(hub, c, noting);
    expect(await (await engine.start(c.work, 4, { id: "w2" })).result()).toEqual(["c", "c"]);
    const conflicts = hub.home.conflicts({ kind: "divergence" });
    expect(conflicts).toHaveLength(2);
    for (const { id } of conflicts) hub.home.resolve(id, `use ${lab.origin}`);
    expect(await (await engine.start(c.work, 4, { id: "w3" })).result()).toEqual(["b", "b"]);
    expect(c.calls).toEqual(["double 4", "square 4"]);
  });

  test("here and at a trusted peer switch the memo off as soon as the answer of the peer is there", async () => {
    const [first, second] = [programAt(() => "here"), programAt(() => "there")];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    const { noting } = memosAt(hub, [edge]);
    await using engine = await engineAt(hub, second, noting);
    await (await engine.start(second.work, 4, { id: "w2" })).result();
    await (await engine.start(second.work, 4, { id: "w3" })).result();
    expect(second.calls).toEqual(["double 4", "square 4"]);
    await send(edge, hub);
    await (await engine.start(second.work, 4, { id: "w4" })).result();
    expect(second.calls).toEqual(["double 4", "square 4", "double 4", "square 4"]);
    expect(hub.home.conflicts({ kind: "divergence" })).toHaveLength(2);
  });

  test("of a peer that is not trusted change nothing", async () => {
    const [first, second] = [programAt(() => "here"), programAt(() => "there")];
    const [edge, hub] = [siteOf("edge", first), siteOf("hub", second)];
    await edge.run(first.work, { w: 4 });
    await send(edge, hub);
    await using engine = await engineAt(hub, second, memosAt(hub, []).noting);
    for (const id of ["w2", "w3"]) await (await engine.start(second.work, 4, { id })).result();
    expect(second.calls).toEqual(["double 4", "square 4"]);
    expect(hub.home.conflicts()).toEqual([]);
  });
});

test("an answer in the log has a nonce: who guesses input and result cannot tell its key", async () => {
  const program = programAt();
  const edge = siteOf("edge", program);
  await edge.run(program.work, { w: 4 });
  await edge.take();
  const [first] = edge.home.scan({ type: MEMO_ANSWER_TYPE });
  const answer = readMemoAnswer(edge.home.content(first!.key)!)!;
  expect(edge.home.saying(memoEnd(answer.memo), "answers")).toEqual([{ key: first!.key, origins: [edge.origin] }]);
  expect(answer.nonce).toMatch(/^[0-9a-f]{32}$/);
  const guessed = contentOf(MEMO_ANSWER_TYPE, canonicalJson({ ...answer, nonce: "0".repeat(32) }));
  expect(guessed.key).not.toBe(first!.key);
  // The same bytes every time.
  const before = edge.home.scan({ type: MEMO_ANSWER_TYPE });
  await edge.take();
  expect(edge.home.scan({ type: MEMO_ANSWER_TYPE })).toEqual(before);
});
