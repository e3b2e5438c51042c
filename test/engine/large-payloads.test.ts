// Large payloads, and payloads that repeat long texts: what they take in a file, and what deletes them.

import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { append, createEngine, END, graph, signal, START, stream, task, workflow } from "reprise";
import { sqlite } from "reprise/sqlite";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { copyOf, Mirror } from "../../src/stores/maintenance/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createFolder } from "./world.ts";

const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };

function words(seed: string, length: number): string {
  let text = "";
  for (let at = 0; text.length < length; at += 1) text += `${seed} ${(at * 104_729) % 999_983} `;
  return text.slice(0, length);
}

interface Message {
  readonly role: string;
  readonly content: string;
}

/** A loop that sends the whole conversation to a model, turn by turn. */
const agent = workflow("agent", async (ctx, turns: number) => {
  const messages: Message[] = [{ role: "system", content: "Answer politely." }];
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push({ role: "user", content: words(`question ${turn}`, 2_000) });
    const request = { model: "m", messages };
    const answer = await ctx.run("model", request, (_op, { messages }) => words(`answer ${messages.length}`, 2_000));
    messages.push({ role: "assistant", content: answer });
  }
  return messages.length;
});

test("100 turns of 2 KB in each direction take less than 1 MB in a SQLite file, with all of its empty tables", async () => {
  using folder = createFolder();
  const path = join(folder.path, "agent.db");
  await using engine = await createEngine({ store: sqlite(path), definitions: [agent], durability: "relaxed" });
  const run = await engine.start(agent, 100, { id: "agent" });
  expect(await run.result()).toBe(201);
  expect((await run.verify()).status).toBe("same");
  await engine.close();
  const db = new DatabaseSync(path);
  const bytes = (table: string): number =>
    Number(db.prepare(`select sum(length(data)) as bytes from ${table}`).get()!["bytes"]);
  expect(bytes("journal") + bytes("run_contents")).toBeLessThan(620_000);
  db.exec("pragma wal_checkpoint(truncate)");
  db.close();
  expect(statSync(path).size).toBeLessThan(1_048_576);
});

const big = words("big", 100_000);
const echo = task("echo", (_ctx, text: string) => `${text}!`);
const child = workflow("child", async (_ctx, text: string) => text.length);
const everything = workflow(
  "everything",
  { ports: { said: signal<string>(), pages: stream<string>() } },
  async (ctx, { text, round }: { text: string; round: number }): Promise<number> => {
    const heard = await ctx.receive("said");
    const answer = await ctx.task(echo, text);
    await ctx.emit("pages", answer);
    const length = await ctx.child(child, heard);
    if (round > 0) return length + answer.length;
    return ctx.continueAsNew({ text: `${text}.`, round: 1 });
  },
);
const chat = graph("chat", { state: { messages: append<string>() } })
  .node("ask", async () => ({ messages: [words("ask", 3_000)] }))
  .node("answer", async (ctx, { messages }) => ({
    messages: [await ctx.run("model", { messages }, (_op, given) => words(`answer ${given.messages.length}`, 3_000))],
  }))
  .edge(START, "ask")
  .edge("ask", "answer")
  .edge("answer", "ask", ({ messages }) => messages.length < 60)
  .edge("answer", END);

test("large payloads of every kind are read as they were written, in copies and forks, too, and go with their runs", async () => {
  using folder = createFolder();
  const path = folder.file("home.db");
  await using engine = await createEngine({
    store: sqlite(path),
    definitions: [everything, child, echo, chat, agent],
    durability: "relaxed",
  });
  const run = await engine.start(everything, { text: big, round: 0 }, { id: "everything" });
  await run.signal("said", `${big}?`);
  await run.signal("said", `${big}??`);
  expect(await run.result()).toBe(100_002 + 100_002);
  const chatting = await engine.start(chat, {}, { id: "chat" });
  expect((await chatting.result()).messages.length).toBe(60);
  const first = await engine.start(agent, 20, { id: "agent" });
  await first.result();
  const fork = await first.fork({ at: "Operation(15)", id: "fork" });
  expect(await fork.result()).toBe(41);
  for (const one of [run, chatting, first, fork]) expect((await one.verify()).status).toBe("same");

  const store = await openSqliteStore({ path, ...PORTS });
  expect(await store.check()).toEqual([]);
  const mirror = await Mirror.open({ path: folder.file("mirror.db"), name: "prod", ...PORTS });
  const names = [
    ["everything", 0],
    ["everything", 1],
    ["chat", 0],
    ["agent", 0],
  ] as const;
  for (const [id, generation] of [...names, ...names]) {
    const copy = await copyOf(store, { id, generation });
    await mirror.put([copy!]);
    const home = await store.readJournal(copy!.number!, 0);
    const there = await mirror.store.findRun(id, generation);
    const copied = await mirror.store.readJournal(there!.run, 0);
    expect(copied.map(({ data }) => data).join() === home.map(({ data }) => data).join()).toBe(true);
  }
  expect(await mirror.store.check()).toEqual([]);
  await mirror.close();
  expect(statSync(folder.file("mirror.db")).size).toBeLessThan(1_500_000);

  await engine.prune({ olderThan: 0 });
  expect(await store.check()).toEqual([]);
  await store.close();
  const db = new DatabaseSync(path, { readOnly: true });
  expect(
    db.prepare("select (select count(*) from runs) as runs, (select count(*) from run_contents) as contents").get(),
  ).toEqual({
    runs: 0,
    contents: 0,
  });
  db.close();
});

test("doctor names the payload that a missing content breaks, and only its run", async () => {
  using folder = createFolder();
  const path = folder.file("store.db");
  await using engine = await createEngine({ store: sqlite(path), definitions: [child], durability: "relaxed" });
  await (await engine.start(child, big, { id: "broken" })).result();
  await (await engine.start(child, big, { id: "whole" })).result();
  await engine.close();
  const db = new DatabaseSync(path);
  db.exec("delete from run_contents where run = (select run from runs where id = 'broken')");
  db.close();
  const store = await openSqliteStore({ path, ...PORTS });
  const problems = await store.check();
  expect(problems.map(({ invariant, run, seq }) => ({ invariant, run, seq }))).toEqual([
    { invariant: "I50 payloads are complete", run: "broken", seq: 1 },
    { invariant: "I8 journal hash chain", run: "broken", seq: 1 },
  ]);
  expect(problems[0]!.message).toMatch(/^PAYLOAD_MISSING: The content [\w-]{32} of run number \d+ is not in the store/);
  await store.close();
});
