// Definitions of the rigs. Their results are known in advance, and the bank's money stays constant.

import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { task, workflow, type AnyTask, type Definition } from "reprise";
import { double, leaf, load, shaky } from "../slow/sigkill/definitions.ts";
import { twoHundred } from "../slow/sigkill/flow-definitions.ts";
import { bankOn, stoppedOn } from "./bank.ts";
import { ORDERS } from "./order-definitions.ts";

export interface Naps {
  readonly each: number;
  readonly times: number;
}

/** Timers: the journal has the requested and the actual duration of each. */
export const naps = workflow("naps", async (ctx, { each, times }: Naps) => {
  for (let n = 0; n < times; n += 1) await ctx.sleep(each);
  return times;
});

/** Kills the process that runs it. */
export const poison = workflow("poison", async (ctx) => {
  await ctx.run("drink", () => process.kill(process.pid, "SIGKILL"));
});

/** Blocks its process forever. */
export const endless = workflow("endless", async (ctx) => {
  await ctx.run("begin", () => 1);
  for (;;);
});

/** Sequential steps, each with a large result. */
export const steps = workflow("steps", async (ctx, count: number) => {
  let sum = 0;
  for (let n = 0; n < count; n += 1) sum += await ctx.run("step", () => n);
  return sum;
});

/** Records each execution of a step in a file. */
export const marked = workflow("marked", async (ctx, { count, file }: { count: number; file: string }) => {
  const answers: number[] = [];
  for (let n = 1; n <= count; n += 1) {
    const step = async (): Promise<number> => (appendFileSync(file, `${n}\n`), n * n);
    answers.push(await ctx.run("step", step));
  }
  return answers;
});

interface Slow {
  readonly n: number;
  /** While this file exists, no step ends. */
  readonly gate: string;
  readonly ms: number;
}

async function slowly({ n, gate, ms }: Slow): Promise<number> {
  await sleep(existsSync(gate) ? 3_600_000 : ms);
  return n * n;
}

export const slowTask = task("slowTask", (_ctx, input: Slow) => slowly(input));

/** One slow step: an operation of this worker, or a task of any worker. */
export const slow = workflow("slow", (ctx, input: Slow) =>
  input.n % 2 === 0 ? ctx.run("square", () => slowly(input)) : ctx.task(slowTask, input),
);

export const answer = task("answer", (_ctx, text: string) => `${text}!`);

/** Starts the other workflow as a child and waits for it; the other does the same with this one. */
export const thither = workflow("thither", async (ctx, n: number): Promise<number> => {
  if (n === 0) return 0;
  const [back, reply] = await Promise.all([ctx.child(hither, n - 1), ctx.task(answer, `thither ${n}`)]);
  return back + reply.length;
});
export const hither = workflow("hither", async (ctx, n: number): Promise<number> => {
  if (n === 0) return 0;
  const [reply, back] = await Promise.all([ctx.task(answer, `hither ${n}`), ctx.child(thither, n - 1)]);
  return back + reply.length;
});

export function kindOf(url: string): "sqlite" | "postgres" | "mysql" {
  return url.startsWith("sqlite:") ? "sqlite" : url.startsWith("mysql:") ? "mysql" : "postgres";
}

/** All definitions, with the bank of that database. */
export function definitionsOf(url: string): readonly (Definition | AnyTask)[] {
  return [
    ...[
      load,
      leaf,
      double,
      shaky,
      twoHundred as Definition,
      naps,
      poison,
      endless,
      steps,
      marked,
      slow,
      slowTask,
      thither,
      hither,
      answer,
    ],
    ...ORDERS,
    ...[bankOn(kindOf(url)), stoppedOn(kindOf(url))],
  ];
}
