// Definitions of the workloads. One list for the parent and its worker processes: a worker claims only definitions it has.

import { setTimeout as wait } from "node:timers/promises";
import { promise, task, workflow } from "reprise";
import { diamond, pipeline, wide } from "./flow-definitions.ts";
import { growthDefinitions } from "./growth-definitions.ts";
import { chain, remembering, spreading } from "./graph-definitions.ts";

interface Length {
  readonly count: number;
  /** 0: the function returns at once. */
  readonly waitMs: number;
}

interface Answer {
  readonly index: number;
  readonly text: string;
}

/** A small result, as most are: about 40 bytes in the journal. */
function answer(index: number, waitMs: number): Answer | Promise<Answer> {
  const value = { index, text: "a small answer" };
  return waitMs === 0 ? value : wait(waitMs, value);
}

export const steps = workflow("steps", async (ctx, { count, waitMs }: Length) => {
  for (let index = 0; index < count; index += 1) await ctx.run("step", () => answer(index, waitMs));
  return count;
});

/** As `steps`, with inputs; pure ones are executed once for all runs. */
export const inputSteps = workflow(
  "input-steps",
  async (ctx, { count, isPure }: { count: number; isPure: boolean }) => {
    const options = isPure ? { pure: "1" } : {};
    for (let index = 0; index < count; index += 1)
      await ctx.run("step", { index }, (_op, input) => answer(input.index, 0), options);
    return count;
  },
);

export const work = task("work", (_ctx, { index, waitMs }: { index: number; waitMs: number }) => answer(index, waitMs));

export const tasks = workflow("tasks", async (ctx, { count, waitMs }: Length) => {
  for (let index = 0; index < count; index += 1) await ctx.task(work, { index, waitMs });
  return count;
});

export const fanout = workflow("fanout", async (ctx, { count }: { count: number }) => {
  const answers = await Promise.all(Array.from({ length: count }, (_, index) => ctx.task(work, { index, waitMs: 0 })));
  return answers.length;
});

/** Many steps, then a wait; one more step follows. */
export const history = workflow("history", { ports: { go: promise() } }, async (ctx, { count }: { count: number }) => {
  for (let index = 0; index < count; index += 1) await ctx.run("step", () => answer(index, 0));
  await ctx.promise("go");
  await ctx.run("step", () => answer(count, 0));
  return count;
});

/** Text like that of documents: mostly ASCII. */
const PIECE = "The quick brown fox – él perro – jumps over the lazy dog. ";

export const payloads = workflow("payloads", async (ctx, { count, bytes }: { count: number; bytes: number }) => {
  const text = PIECE.repeat(Math.ceil(bytes / Buffer.byteLength(PIECE))).slice(0, bytes);
  for (let index = 0; index < count; index += 1) await ctx.run("step", () => ({ index, text }));
  return count;
});

export const definitions = [
  ...[steps, inputSteps, tasks, fanout, history, payloads, work],
  ...[chain, spreading, remembering],
  ...[pipeline, diamond, wide],
  ...growthDefinitions,
] as const;
