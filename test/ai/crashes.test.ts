// An agent of two rounds with three tools, killed at every commit.

import { generateText, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { append, graph, START, workflow, type Run } from "reprise";
import { durable, tokens, type TokenFrame } from "reprise/ai";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { z } from "zod";
import { createFolder, storeAround, type AnyWrite } from "../engine/world.ts";
import { partsOf, resultOf, roundOf, type Content } from "./scripted-model.ts";

const NAMES = ["search", "price", "stock"] as const;

const SCRIPT: readonly (readonly Content[])[] = [
  [
    { reasoning: "Three questions at once." },
    ...NAMES.map((name): Content => ({ tool: name, id: `call-${name}`, input: { item: name } })),
  ],
  [{ text: `All three tools have answered, and this is the summary. ${"It is long. ".repeat(300)}` }],
];

/** Pieces that are frames of their own. */
const pieces = (text: string): readonly string[] => text.match(/.{1,1200}/gs) ?? [];

/** Calls outside the engine. No commit may hold the answer to a call that is made later. */
class Ledger {
  readonly calls: string[] = [];
  readonly committed = new Set<string>();
  readonly repeated: string[] = [];
  #next = Promise.withResolvers<void>();

  /** The next commit. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  call(key: string): void {
    this.calls.push(key);
    if (this.committed.has(key)) this.repeated.push(key);
  }

  commit(writes: readonly AnyWrite[]): void {
    for (const write of writes)
      for (const { type, data } of write.write === "turn" ? write.entries : []) {
        if (type !== "OperationCompleted") continue;
        const { operationName, input } = JSON.parse(data) as { operationName: string; input: { prompt?: unknown[] } };
        const round = input.prompt?.filter((message) => (message as { role: string }).role === "assistant").length;
        this.committed.add(operationName.startsWith("chat") ? `chat ${round}` : operationName);
      }
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }
}

function agentOf(ledger: Ledger) {
  const model = new MockLanguageModelV4({
    modelId: "m",
    doGenerate: async (options) => {
      ledger.call(`chat ${roundOf(options)}`);
      return resultOf(SCRIPT[roundOf(options)]!);
    },
    doStream: async (options) => {
      ledger.call(`chat ${roundOf(options)}`);
      const parts = partsOf(SCRIPT[roundOf(options)]!, pieces);
      const stream = new ReadableStream(
        {
          async pull(controller) {
            const part = parts.shift();
            if (part === undefined) return controller.close();
            controller.enqueue(part);
            // The frame of a long piece is durable before the next one arrives, so that a kill can leave a part of an answer behind.
            if (part.type === "text-delta" && part.delta.length === 1200) await ledger.next;
          },
        },
        { highWaterMark: 0 },
      );
      return { stream };
    },
  });
  const tools = Object.fromEntries(
    NAMES.map((name) => [
      name,
      tool({
        inputSchema: z.object({ item: z.string() }),
        execute: async ({ item }) => {
          ledger.call(`tool ${name}`);
          return `${item} of ${name}`;
        },
      }),
    ]),
  );
  const inWorkflow = workflow("agent", { ports: { words: tokens() } }, async (ctx, isStreamed: boolean) => {
    const ai = durable(ctx, { stream: "words" });
    const settings = { model: ai.model(model), tools: ai.tools(tools), prompt: "p", stopWhen: stepCountIs(5) };
    const { text, ids } = await ai.call(async () => {
      if (!isStreamed) {
        const { text, response } = await generateText(settings);
        return { text, ids: [response.id] };
      }
      const result = streamText(settings);
      return { text: await result.text, ids: [(await result.response).id] };
    });
    return ctx.run("last", { text, ids }, (_op, given) => given.text);
  });
  const inGraph = graph("agent graph", { ports: { words: tokens() }, state: { texts: append<string>() } })
    .node("think", async (ctx) => {
      const ai = durable(ctx, { stream: "words" });
      const { text } = await ai.call(() =>
        generateText({ model: ai.model(model), tools: ai.tools(tools), prompt: "p", stopWhen: stepCountIs(5) }),
      );
      return { texts: [text] };
    })
    .edge(START, "think");
  return { inWorkflow, inGraph };
}

type Agents = ReturnType<typeof agentOf>;
type Start = (engine: TestEngine<any>, agents: Agents, id: string) => Promise<Run<any>>;

const KINDS: readonly (readonly [name: string, start: Start])[] = [
  ["generateText in a workflow", (engine, { inWorkflow }, id) => engine.start(inWorkflow, false, { id })],
  ["streamText in a workflow", (engine, { inWorkflow }, id) => engine.start(inWorkflow, true, { id })],
  ["generateText in a node", (engine, { inGraph }, id) => engine.start(inGraph, {}, { id })],
];

/** What a reader shows: the texts of all calls, each by its last execution. */
function shown(frames: readonly TokenFrame[]): readonly string[] {
  const calls = new Map<string, { execution: number; text: string }>();
  for (const frame of frames) {
    const known = calls.get(frame.call);
    if (frame.part === "begin" && frame.execution > (known?.execution ?? 0))
      calls.set(frame.call, { execution: frame.execution, text: "" });
    const call = calls.get(frame.call);
    if (call?.execution === frame.execution && "delta" in frame) call.text += frame.delta;
  }
  return [...calls.values()].map(({ text }) => text);
}

interface Killed {
  readonly output: string;
  readonly commits: number;
  readonly texts: readonly string[];
  readonly frames: readonly TokenFrame[];
  readonly ledger: Ledger;
  readonly verdict: string;
}

/** Kills the process before commit `at`, or after it if `at` is not whole. */
async function killedAt(path: string, start: Start, at: number): Promise<Killed> {
  const ledger = new Ledger();
  const agents = agentOf(ledger);
  let commits = 0;
  const dead: { crash?: () => Promise<void> } = {};
  const source = storeAround(async (writes, apply) => {
    if (!writes.some(({ write }) => write === "turn")) return apply();
    commits += 1;
    const dies = dead.crash !== undefined && commits === Math.floor(at);
    if (dies && Number.isInteger(at)) {
      await dead.crash!();
      throw new Error("dead");
    }
    const outcomes = await apply();
    ledger.commit(writes);
    if (!dies) return outcomes;
    await dead.crash!();
    throw new Error("dead");
  }, path);
  await using engine = await createTestEngine({ store: source, definitions: [agents.inWorkflow, agents.inGraph] });
  dead.crash = () => engine.crash();
  const run = await start(engine, agents, `killed at ${at}`);
  const output = JSON.stringify(await run.result());
  const frames: TokenFrame[] = [];
  for await (const { value } of run.stream("words" as never)) if (value !== undefined) frames.push(value as TokenFrame);
  const verdict = (await run.verify()).status;
  return { output, commits, texts: shown(frames), frames, ledger, verdict };
}

test.each(KINDS)(
  "%s: no committed call is made twice, the output is the same, and readers see each token once",
  async (_name, start) => {
    using folder = createFolder();
    // One database for all of them: a new one takes a second on a server.
    const path = folder.file("agents.db");
    const clean = await killedAt(path, start, 0);
    expect(clean.ledger.calls).toHaveLength(5);
    expect(clean.verdict).toBe("same");
    expect(clean.output).toContain("this is the summary");
    expect(clean.texts.join("")).toContain("Three questions at once.");
    let repeats = 0;
    let partial = 0;
    for (let commit = 1; commit <= clean.commits; commit += 1)
      for (const at of [commit, commit + 0.5]) {
        const killed = await killedAt(path, start, at);
        expect(killed.ledger.repeated, `killed at ${at}`).toEqual([]);
        expect([killed.output, killed.verdict, killed.texts], `killed at ${at}`).toEqual([
          clean.output,
          "same",
          clean.texts,
        ]);
        repeats += killed.ledger.calls.length - clean.ledger.calls.length;
        if (killed.frames.some(({ execution }) => execution > 1)) partial += 1;
      }
    // Calls under way were made again, and readers saw parts of answers that were lost.
    expect(repeats).toBeGreaterThan(0);
    expect(partial).toBeGreaterThan(0);
  },
);

test("a reader that is replaced after every frame shows each token once", async () => {
  const ledger = new Ledger();
  const { inWorkflow } = agentOf(ledger);
  const store = storeAround(async (writes, apply) => {
    const outcomes = await apply();
    if (writes.some(({ write }) => write === "turn")) ledger.commit(writes);
    return outcomes;
  });
  await using engine = await createTestEngine({ store, definitions: [inWorkflow] });
  const run = await engine.start(inWorkflow, true);
  const seen: TokenFrame[] = [];
  let offset = 0;
  let crashes = 0;
  for (let hasEnded = false; !hasEnded;) {
    hasEnded = true;
    // Each reader reads one frame, stores its offset, and is gone.
    for await (const chunk of run.stream("words", { after: offset })) {
      expect(chunk.offset).toBe(offset + 1);
      offset = chunk.offset;
      if (chunk.value !== undefined) seen.push(chunk.value);
      hasEnded = false;
      break;
    }
    if (seen.at(-1)?.part === "text" && crashes === 0) {
      crashes += 1;
      await engine.crash();
    }
  }
  await run.result();
  expect(crashes).toBe(1);
  const texts = shown(seen);
  expect(texts[1]).toBe((SCRIPT[1]![0] as { text: string }).text);
  expect(texts).toHaveLength(2);
});
