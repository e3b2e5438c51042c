import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import type { Entry, RunRecord } from "../../src/kernel/index.ts";
import { storeAround } from "../engine/world.ts";
import { compareAnswers, findEarlyAnswers } from "./early-answers.ts";

test("a parent that has the result of a child before the child ended is found, by the parent's number and command", async () => {
  const inner = workflow("inner", async (ctx, n: number) => ctx.run("double", () => 2 * n));
  const outer = workflow(
    "outer",
    async (ctx, n: number) => (await ctx.child(inner, n)) + (await ctx.child(inner, n + 1)),
  );
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createEngine({ store: source, definitions: [inner, outer] });
  const started = await Promise.all([1, 2, 3].map((n) => engine.start(outer, n)));
  await Promise.all(started.map((run) => run.result()));
  const opened = source.store;
  expect(await findEarlyAnswers(opened)).toEqual({ answers: 6, problems: [] });
  const runs: readonly RunRecord[] = await opened.listRuns({ limit: 100 });
  const journals = new Map<number, readonly Entry[]>();
  for (const { run } of runs) journals.set(run, await opened.readJournal(run, 0));
  const child = runs.find(({ parent }) => parent !== undefined)!;
  const journal = journals.get(child.run)!;
  const problemsWith = (changed: readonly Entry[]): readonly string[] =>
    compareAnswers(runs, new Map([...journals, [child.run, changed]])).problems;
  const last = journal.at(-1)!;
  expect(problemsWith([...journal.slice(0, -1), { ...last, at: last.at + 1_000 }])).toEqual([
    expect.stringMatching(/was answered \d+ ms before its child ended/),
  ]);
  expect(problemsWith(journal.slice(0, -1))).toEqual([expect.stringContaining("before its child ended")]);
  expect(problemsWith([...journal.slice(0, -1), { ...last, data: '{"output":-1}' }])).toEqual([
    expect.stringContaining("another value"),
  ]);
  expect(
    compareAnswers(
      runs.filter((run) => run !== child),
      journals,
    ).problems,
  ).toEqual([expect.stringContaining("there is no such child")]);
});
