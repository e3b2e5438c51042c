// ACCEPTANCE 43: a commit is void, or its outcome is unknown, and the same worker claims the turn again.

import { describe, expect, test } from "vitest";
import { promise, task, workflow } from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { collect, macrotask, storeAround, type AnyStore, type AnyWrite } from "./world.ts";

/** The outcome of a chosen batch. */
const FAULTS = {
  /** Another worker held the turn in between: every turn of the batch is void, the rest is applied. */
  async "taken over"(writes: readonly AnyWrite[], store: AnyStore): Promise<readonly unknown[]> {
    const turns = writes.filter((write) => write.write === "turn");
    await store.write(turns.map(({ run, token }) => ({ write: "return-turn", run, token }) as const));
    return store.write(writes);
  },
  async "failed before it was applied"(): Promise<readonly unknown[]> {
    throw ioError();
  },
  async "failed after it was applied"(writes: readonly AnyWrite[], store: AnyStore): Promise<readonly unknown[]> {
    await store.write(writes);
    throw ioError();
  },
  async "applied twice"(writes: readonly AnyWrite[], store: AnyStore): Promise<readonly unknown[]> {
    await store.write(writes.filter(({ write }) => write === "turn"));
    return store.write(writes);
  },
} as const;

function ioError(): Error {
  return Object.assign(new Error("disk I/O error"), { code: "STORE_IO" });
}

class Witness {
  readonly committed = new Set<string>();
  readonly executed: string[] = [];
  readonly again: string[] = [];

  async execute(label: string, turns: number): Promise<string> {
    this.executed.push(label);
    if (this.committed.has(label)) this.again.push(label);
    for (let turn = 0; turn < turns; turn += 1) await macrotask();
    return label;
  }
}

function createSubject(witness: Witness) {
  const step = task("step", (_ctx, label: string) => witness.execute(label, 1));
  const child = workflow("child", async (ctx, label: string) => ctx.run("grow", () => witness.execute(label, 0)));
  const subject = workflow("subject", { ports: { go: promise<string>() } }, async (ctx) => {
    ctx.state.set("began", true);
    const first = await Promise.all([
      ctx.run("a", () => witness.execute("a", 0)),
      ctx.task(step, "b"),
      ctx.run("c", () => witness.execute("c", 2)),
      ctx.child(child, "d", { id: "child-d" }),
    ]);
    const timer = ctx.sleep("1 day");
    const go = await ctx.promise("go", { timeout: "1 hour" });
    timer.cancel();
    await ctx.sleep("1s");
    const second = await ctx.task(step, "e");
    return [...first, go ?? "ran out", second, await ctx.run("f", () => witness.execute("f", 1))];
  });
  return { subject, definitions: [subject, child, step] as const };
}

/** The labels whose results a batch makes durable. */
function labelsIn(writes: readonly AnyWrite[]): string[] {
  const texts = writes.flatMap((write) => {
    if (write.write === "end-item") return [write.arrival.data];
    return write.write === "turn" ? write.entries.map(({ data }) => data) : [];
  });
  return texts.flatMap((text) => {
    const { result } = JSON.parse(text) as { result?: unknown };
    return typeof result === "string" ? [result] : [];
  });
}

async function runWithFault(
  fault: keyof typeof FAULTS,
  at: number | undefined,
): Promise<{ batches: number; hit: boolean }> {
  const witness = new Witness();
  const { subject, definitions } = createSubject(witness);
  let engine: TestEngine | undefined = undefined as TestEngine | undefined;
  let batches = 0;
  let hit = false;
  const source = storeAround(async (writes, apply) => {
    if (engine === undefined) return apply();
    if (batches++ === at) {
      hit = true;
      return FAULTS[fault](writes, source.store);
    }
    const outcomes = await apply();
    const applied = writes.filter((_write, index) => (outcomes[index] as { status?: string }).status === "committed");
    for (const label of labelsIn(applied)) witness.committed.add(label);
    return outcomes;
  });
  const made = await createTestEngine({ definitions, store: source });
  engine = made as unknown as TestEngine;
  const start = () => made.start(subject, undefined, { id: "run-1" });
  const run = await start().catch(() => start());
  const result = run.result();
  const tell = () =>
    run.resolve("go", "went").catch((error: { code?: string }) => expect(error.code).toMatch(/STORE_IO|ALREADY/));
  await tell();
  await tell();
  await made.clock.advance("1 day");
  const where = `${fault}, batch ${String(at)}`;
  expect(await result, where).toEqual(["a", "b", "c", "d", "went", "e", "f"]);
  expect(witness.again, where).toEqual([]);
  for (const { id, definition } of await collect(made.list()))
    expect(await made.get(definition as "subject", id).verify(), where).toMatchObject({ status: "same" });
  const commands = (await collect(run.journal())).filter(({ type }) => /Completed|Fired|Resolved|Cancelled/.test(type));
  expect(new Set(commands.map(({ type, command }) => `${type} ${command}`)).size, where).toBe(commands.length);
  expect(await source.store.check(), where).toEqual([]);
  const { items } = await source.store.info();
  expect(items, where).toEqual({ ready: 0, leased: 0, delayed: 0 });
  await made.close();
  return { batches, hit };
}

describe.each(Object.keys(FAULTS) as (keyof typeof FAULTS)[])("a batch that is %s", (fault) => {
  test("ACCEPTANCE 43: no result is missing or duplicated, whichever batch it is", async () => {
    const { batches } = await runWithFault(fault, undefined);
    let hits = 0;
    for (let batch = 0; batch < batches; batch += 1) if ((await runWithFault(fault, batch)).hit) hits += 1;
    expect(hits).toBe(batches);
  });
});

test("repeating a start whose outcome is unknown finds the run, and the run completes", async () => {
  let armed = false;
  const source = storeAround(async (writes, apply) => {
    const outcomes = await apply();
    if (!armed || !writes.every(({ write }) => write === "start")) return outcomes;
    armed = false;
    throw ioError();
  });
  const plain = workflow("plain", async (ctx) => ctx.run("step", () => "ran"));
  await using engine = await createTestEngine({ definitions: [plain], store: source });
  await engine.clock.advance(0);
  armed = true;
  await expect(engine.start(plain, undefined, { id: "run-1" })).rejects.toMatchObject({ code: "STORE_IO" });
  const run = await engine.start(plain, undefined, { id: "run-1" });
  expect(await run.result()).toBe("ran");
});
