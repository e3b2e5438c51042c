// Remembered results on the command line: memo list, memo clear, show, journal and doctor.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine, task, workflow } from "reprise";
import { createGate } from "../engine/world.ts";
import { jsonLines } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const embed = task("embed", { pure: "small-1" }, (_ctx, text: string) => ({ length: text.length, token: "sk-secret" }));
const search = workflow("search", async (ctx, text: string) => {
  const { length } = await ctx.task(embed, text);
  return ctx.run("score", length, (_op, n) => n / 2, { pure: "1" });
});

const searched = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([embed, search]).start(
    { id: "search-1", what: search, input: "four", until: "completed" },
    { id: "search-2", what: search, input: "four", until: "completed" },
  );

interface ListedMemo {
  readonly key: string;
  readonly status: string;
  readonly results: readonly Readonly<Record<string, unknown>>[];
}

async function listed(store: StoreWithRuns, ...args: string[]): Promise<ListedMemo[]> {
  const { code, stdout } = await store.cli("memo", "list", "--json", ...args);
  expect(code).toBe(0);
  return jsonLines(stdout) as ListedMemo[];
}

test("memo list names the step, the run and the redacted result of each key", async () => {
  using store = await searched();
  const memos = (await listed(store)).toSorted((a, b) =>
    String(a.results[0]!["step"]).localeCompare(String(b.results[0]!["step"])),
  );
  expect(memos).toMatchObject([
    { status: "known", results: [{ step: "embed", runId: "search-1", definition: "search", result: { length: 4 } }] },
    { status: "known", results: [{ step: "score", runId: "search-1", result: 2 }] },
  ]);
  expect(JSON.stringify(memos)).not.toContain("sk-secret");
  expect(JSON.stringify(await listed(store, "--show-secrets"))).toContain("sk-secret");
  const { stdout } = await store.cli("memo", "list");
  expect(stdout).toContain(memos[1]!.key);
  expect(stdout).toMatch(/score\n {2}[0-9a-f]{64}\n {2}search-1 #\d+ → 2/);
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});

test("show says which steps reused a result", async () => {
  using store = await searched();
  const { stdout } = await store.cli("show", "search-2");
  expect(stdout).toMatch(/embed .*reused → \{ length: 4/);
  expect(stdout).toMatch(/score .*operation, reused → 2/);
  expect((await store.cli("show", "search-1")).stdout).not.toContain("reused");
});

test("memo clear forgets the named keys, or all, and refuses anything else", async () => {
  using store = await searched();
  const [first] = await listed(store);
  const missing = await store.cli("memo", "clear");
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("pass --all")]);
  expect((await store.cli("memo", "clear", "1234", "--yes")).stderr).toContain("Expected a key of 64 hex digits");
  const cleared = await store.cli("memo", "clear", first!.key, "--yes", "--json");
  expect(jsonLines(cleared.stdout)).toEqual([{ rows: 1 }]);
  expect((await store.cli("memo", "clear", first!.key, "--yes")).code).toBe(1);
  expect((await store.cli("memo", "clear", "--all", "--yes")).stdout).toBe("cleared 1 result\n");
  expect(await listed(store)).toEqual([]);
  expect((await store.cli("memo", "list")).stderr).toContain("No result is remembered.");
});

test("doctor and memo list --off show a step that is not pure with both results", async () => {
  const gates = [createGate(), createGate()];
  let calls = 0;
  const draw = workflow("draw", (ctx) =>
    ctx.run(
      "draw",
      "x",
      async () => {
        const call = calls++;
        await gates[call]!.wait();
        return call;
      },
      { pure: "1" },
    ),
  );
  using store = await searched();
  {
    await using engine = await createEngine({ store: store.url, definitions: [draw] });
    const runs = [await engine.start(draw, undefined, { id: "draw-1" })];
    await gates[0]!.reached;
    runs.push(await engine.start(draw, undefined, { id: "draw-2" }));
    await gates[1]!.reached;
    for (const gate of gates) gate.open();
    await Promise.all(runs.map((run) => run.result()));
  }
  const [off, ...others] = await listed(store, "--off");
  expect(others).toEqual([]);
  expect(off).toMatchObject({
    status: "divergent",
    results: [
      { runId: "draw-1", result: 0, runtime: { node: expect.any(String) } },
      { runId: "draw-2", result: 1, runtime: { node: expect.any(String) } },
    ],
  });
  const { stdout } = await store.cli("memo", "list", "--off");
  expect(stdout).toContain("draw  divergent, not reused");
  expect(stdout).toContain(`reprise memo clear ${off!.key}`);
  const doctor = await store.cli("doctor");
  expect(doctor.code).toBe(0);
  expect(doctor.stdout.replace(/\s+/g, " ")).toContain(
    "draw of draw is declared pure, but returned different results for one input in draw-1, draw-2; not reused.",
  );
  expect(jsonLines((await store.cli("doctor", "--json")).stdout)).toMatchObject([
    { healthy: true, divergent: [{ key: off!.key, step: "draw", definition: "draw", runs: ["draw-1", "draw-2"] }] },
  ]);
});

test("doctor reports a damaged result as a problem, with the command that clears it", async () => {
  using store = await searched();
  const db = new DatabaseSync(store.folder.file("shop.db"));
  db.exec("update memo set value = cast('{}' as blob) where seq = 2");
  db.close();
  const { code, stdout } = await store.cli("doctor");
  expect(code).toBe(1);
  expect(stdout).toContain("I47 memo matches its key");
  expect(stdout.replace(/\s+/g, " ")).toMatch(/Run `reprise memo clear [0-9a-f]{64}`/);
});
