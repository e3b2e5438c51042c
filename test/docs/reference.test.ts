// The reference pages say what the code does; no link leads nowhere.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { append, END, flow, graph, promise, queue, signal, START, task, typed, update, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { documentsOf } from "./code-blocks.ts";
import { ERROR_CODES, newErrorPage, problemsOfErrorPage } from "./error-page.ts";
import { errorsPage } from "./errors-page.ts";
import { httpApiPage } from "./http-api-page.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

test("the page of errors is the catalogue", () => {
  const path = "docs/reference/errors.md";
  if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(join(ROOT, path), errorsPage());
  expect(read(path)).toBe(errorsPage());
});

test("the page of the HTTP API is the table of operations", () => {
  const path = "docs/reference/http-api.md";
  if (process.env["UPDATE_DOCS"] !== undefined) writeFileSync(join(ROOT, path), httpApiPage());
  expect(read(path)).toBe(httpApiPage());
});

test("every error code has its page, which says what the catalogue says; no page is left over", () => {
  const folder = join(ROOT, "docs/errors");
  if (process.env["UPDATE_DOCS"] !== undefined)
    for (const code of ERROR_CODES) {
      const path = join(folder, `${code}.md`);
      if (!existsSync(path)) writeFileSync(path, newErrorPage(code));
    }
  const pages = readdirSync(folder).toSorted();
  expect(pages).toEqual(ERROR_CODES.map((code) => `${code}.md`).toSorted());
  const problems = ERROR_CODES.flatMap((code) => problemsOfErrorPage(code, read(`docs/errors/${code}.md`)));
  expect(problems).toEqual([]);
});

test("a page that says something else than the catalogue is found", () => {
  const page = newErrorPage("BAD_ID");
  expect(problemsOfErrorPage("BAD_ID", page)).toEqual([]);
  expect(problemsOfErrorPage("BAD_NAME", page).length).toBeGreaterThan(3);
  expect(problemsOfErrorPage("BAD_ID", page.replace("## Why", "## Because"))).toHaveLength(1);
  expect(problemsOfErrorPage("BAD_ID", page.replace(/## Why\n\n.*\n/, "## Why\n"))).toHaveLength(1);
});

test("an editor has a sentence for every method of `ctx` and of handles", () => {
  const bare = ["src/workflow/context.ts", "src/engine/api.ts"].flatMap((path) => {
    const lines = read(path).split("\n");
    const isMethod = (line: string): boolean => /^ {2}\w+(?:<.*)?\(/.test(line);
    const hasSentence = (index: number): boolean => lines[index - 1]?.trimEnd().endsWith("*/") === true;
    return lines.flatMap((line, index) => (isMethod(line) && !hasSentence(index) ? [`${path}:${index + 1}`] : []));
  });
  expect(bare).toEqual([]);
});

/** Type → fields, from the tables of the page. */
function documentedEntries(): Map<string, ReadonlySet<string>> {
  const rows = read("docs/reference/entries.md").matchAll(/^\| `(\w+)` \|[^|]*\|([^|]*)\|/gm);
  const documented = new Map<string, ReadonlySet<string>>();
  // Graphs and flows write the same type with other fields, each in its own table.
  for (const [, type = "", fields = ""] of rows) {
    const named = Array.from(fields.matchAll(/`(\w+)`/g), (field) => field[1] ?? "");
    documented.set(type, new Set([...(documented.get(type) ?? []), ...named]));
  }
  return documented;
}

test("the page of entries has every entry type, and no other", () => {
  const union = /export type EntryType =([\s\S]*?);/.exec(read("src/kernel/journal.ts"))?.[1] ?? "";
  const types = Array.from(union.matchAll(/"(\w+)"/g), (match) => match[1]);
  expect(types.length).toBeGreaterThan(20);
  expect([...documentedEntries().keys()].toSorted()).toEqual(types.toSorted());
});

test("what runs really write is on the page of entries", async () => {
  const flaky = task("flaky", { retry: { maxAttempts: 2 }, timeout: "1 s" }, (ctx) => {
    if (ctx.attempt === 1) throw new Error("once");
  });
  const broken = task("broken", () => {
    throw new Error("always");
  });
  const child = workflow("child", { ports: { on: promise<number>() } }, async (ctx, fails: boolean) => {
    if (fails) throw new Error("as told");
    ctx.state.set("a", 1);
    ctx.state.clear("a");
    ctx.state.clear();
    ctx.send("mail", "hello");
  });
  const parent = workflow(
    "parent",
    { ports: { yes: promise<number>(), no: promise(), late: promise(), word: signal<string>() } },
    async (ctx, input: string) => {
      await ctx.task(flaky, undefined, { retry: { maxAttempts: 3, baseDelay: 1, maxDelay: 2 }, timeout: 500 });
      await ctx.task(broken).catch(() => {});
      await ctx.child(child, false);
      await ctx.child(child, true).catch(() => {});
      ctx.sleep("1 hour").cancel();
      await ctx.sleepUntil(new Date(ctx.now().getTime() + 5), { id: "five" });
      ctx.task(broken).cancel("no longer needed");
      ctx.task(broken, undefined, { undo: async () => {} }).cancel();
      ctx.patched("a patch");
      await ctx.sleepUntil(new Date(ctx.now().getTime() + 5));
      let calls = 0;
      await ctx.run("twice", input, () => (calls++ === 0 ? Promise.reject(new Error("once")) : 1), {
        retry: { maxAttempts: 2 },
      });
      await ctx.run("never", () => Promise.reject(new Error("always"))).catch(() => {});
      await ctx.promise("yes", { timeout: "1 day", show: 1 });
      await ctx.promise("yes", { key: "ann" });
      await ctx.resolve(child, "nobody", "on", 1, { key: "ann", by: "parent", reason: "why" }).catch(() => {});
      await ctx.promise("no").catch(() => {});
      await ctx.promise("late", { timeout: 5 });
      await ctx.receive(["word"], { timeout: "1 day" });
      return input;
    },
  );
  const stopped = workflow("stopped", { ports: { sure: promise() } }, async (ctx) =>
    ctx.shield(() => ctx.promise("sure", { timeout: 1 })).then(() => ctx.sleep("1 day")),
  );
  const continuing = workflow("continuing", async (ctx, n: number): Promise<number> =>
    n === 0 ? ctx.continueAsNew(1) : n,
  );
  const listener = workflow(
    "told",
    { ports: { word: signal<string>(), ask: update<number, number>() } },
    async (ctx) => {
      ctx.onUpdate("ask", (n) => (n > 0 ? n : Promise.reject(new Error("no"))));
      await ctx.receive("word");
      await ctx.receive("word");
    },
  );
  const teller = workflow("teller", async (ctx) => {
    const one = ctx.child(listener, undefined, { id: "told" });
    await one.signal("word", "first");
    await one.catch(() => {});
    const two = ctx.child(listener);
    await two.cancel();
    await two.catch(() => {});
  });
  let executions = 0;
  const changing = workflow("changing", { determinism: "per-type", ports: { go: promise() } }, async (ctx) => {
    ctx.state.set("execution", (executions += 1));
    await ctx.promise("go");
  });
  const newer = workflow("changing", { version: 2, ports: { go: promise() } }, async (ctx) => {
    await ctx.promise("go");
  });
  const paying = workflow("paying", { budget: { calls: 0 } }, async (ctx) =>
    ctx.run("pay", () => 1, { cost: { reserve: { calls: 2 }, actual: () => ({ calls: 1 }) } }).catch(() => 0),
  );
  const sharing = workflow("sharing", { budget: { calls: 3 } }, async (ctx) => {
    const cost = { reserve: { calls: 2 }, actual: () => ({ calls: 1 }) };
    await Promise.all([ctx.run("pay", () => 1, { cost }), ctx.run("pay", () => 1, { cost })]);
  });
  const failing = workflow("failing", async () => Promise.reject(new Error("ended")));
  const words = ["any"];
  const steps = graph("steps", { state: { words: append<string>() } })
    .node("twice", { retry: { maxAttempts: 2, baseDelay: 5, maxDelay: 5 } }, async (ctx) => {
      if (ctx.attempt === 1) throw new Error("once");
      ctx.label("said");
      return { words: ["a"] };
    })
    .node("slow", async () => {})
    .node("slower", async () => {})
    .node("never", async () => {
      if (words.length > 0) throw new Error("always");
    })
    .edge(START, ["twice", "slow"])
    .edge("slow", "slower")
    .join(["twice", "slower"], "never")
    .edge("never", END);
  const piped = flow("piped", { input: typed<number>() })
    .action("saved", ["input"], { catch: () => 2 }, (): number => {
      throw new Error("caught");
    })
    .inline("list", ["saved"], ({ saved }) => [saved, saved])
    .when(
      "never",
      ["list"],
      () => false,
      (branch) => branch.action("skipped", ["list"], () => 1).inline("beside", ["list"], () => 1),
    )
    .spread(
      "each",
      ["list"],
      { settle: true, retry: { maxAttempts: 2, baseDelay: 1 }, queue: queue("lists"), key: () => "k" },
      ({ list }) => list,
      () => {
        throw new Error("always");
      },
    )
    .inline("late", ["each", "skipped"], (): number => {
      throw new Error("ended");
    })
    .output(["late", "beside"], ({ late }) => late);
  await using engine = await createTestEngine({
    definitions: [
      changing,
      newer,
      piped,
      steps,
      parent,
      child,
      stopped,
      listener,
      teller,
      failing,
      continuing,
      paying,
      sharing,
      flaky,
      broken,
    ],
  });
  const paid = await engine.start(paying);
  await engine.clock.advance(0);
  await paid.raise({ calls: 1 }, { by: "Ann", reason: "why" });
  await engine.clock.advance(0);
  await paid.declineBudget({ by: "Ann", reason: "why" });
  await paid.result();
  const shared = await engine.start(sharing);
  await engine.clock.advance("1 second");
  await shared.result();
  const run = await engine.start(parent, "x");
  await run.resolve("yes", 1);
  await run.resolve("yes", 1, { key: "ann", by: "Ann", reason: "why" });
  await run.reject("no", new Error("no"));
  await run.signal("word", "hi");
  const cancelled = await engine.start(stopped);
  await cancelled.cancel("enough");
  const failed = await engine.start(failing);
  const stepped = await engine.start(steps, {});
  const flowed = await engine.start(piped, 1);
  const continued = await engine.start(continuing, 0);
  const telling = await engine.start(teller);
  const asked = engine.get(listener, "told");
  await engine.clock.advance(0);
  await asked.update("ask", 1);
  await asked.update("ask", -1).catch(() => {});
  await asked.signal("word", "second");
  const late = await engine.start(stopped, undefined, { deadline: 1 });
  await failed.result().catch(() => failed.retry());
  for (let passed = 0; passed < 20; passed += 1) await engine.clock.advance("1 s");
  await run.result();
  const moved = await engine.start(changing, undefined, { delay: "1 s" });
  await moved.migrate({ version: 2 });
  const changed = await engine.start(changing);
  await engine.clock.advance(0);
  await engine.crash();
  await changed.resolve("go");
  await changed.result();
  const page = documentedEntries();
  const seen = new Set<string>();
  const journals = [run, stepped, flowed, cancelled, failed, late, telling, asked, changed, moved, paid, shared].map(
    (each) => each.journal(),
  );
  journals.push(continued.journal({ generation: 0 }));
  for await (const { id, definition } of engine.list({ definition: "child" }))
    journals.push(engine.get(definition as "child", id).journal());
  for (const journal of journals)
    for await (const { type, data } of journal) {
      seen.add(type);
      const unknown = Object.keys(data as object).filter((field) => page.get(type)?.has(field) !== true);
      expect([type, unknown]).toEqual([type, []]);
    }
  expect([...page.keys()].filter((type) => !seen.has(type))).toEqual([]);
});

test("every link between documents leads somewhere", () => {
  const broken = documentsOf(ROOT).flatMap((path) =>
    Array.from(read(path).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g), ([, target = ""]) => ({ path, target }))
      .filter(({ target }) => !existsSync(join(ROOT, dirname(path), target)))
      .map(({ target }) => `${path}: ${target}`),
  );
  expect(broken).toEqual([]);
});
