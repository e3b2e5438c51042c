// Programs: random durable code whose result does not depend on the order of completions, so that an oracle can compute it.

import { promise, queue, signal, task, workflow, type WorkflowContext } from "reprise";
import type { RandomSource } from "../../replay/random-source.ts";
import type { Client } from "../client.ts";
import { between, expectOutput, type Part, type PartHost, type RunEnd } from "../part.ts";
import type { Machine } from "../process.ts";

const LEAVES = [
  "task",
  "lined task",
  "operation",
  "flaky task",
  "flaky operation",
  "failing",
  "child",
  "sleep",
  "cancelled sleep",
  "state",
  "wait",
  "timed wait",
  "send",
  "stopped child",
] as const;
const BRANCHES = ["sequence", "all", "settled", "race", "any", "try"] as const;
type Leaf = { readonly do: (typeof LEAVES)[number]; readonly id: number; readonly ms: number };
type Program = Leaf | { readonly do: (typeof BRANCHES)[number]; readonly parts: readonly Program[] };

function generate(chance: RandomSource, depth: number, ids: { next: number }): Program {
  if (depth > 0 && chance.happens(0.6))
    return {
      do: chance.pick(BRANCHES),
      parts: Array.from({ length: between(chance, 2, 3) }, () => generate(chance, depth - 1, ids)),
    };
  return { do: chance.pick(LEAVES), id: ids.next++, ms: chance.below(chance.happens(0.1) ? 4_000 : 300) };
}

const isLeaf = (program: Program): program is Leaf => !("parts" in program);

/** The result, in any order of completions. */
function resultOf(program: Program): unknown {
  if (isLeaf(program)) return leafResult(program);
  const parts = program.parts.map(resultOf);
  switch (program.do) {
    case "race":
      return "raced";
    case "any":
      return "any";
    case "settled":
      return parts.map((value) => ({ status: "fulfilled", value }));
    case "try":
      return ["caught inside", parts[1]];
    case "sequence":
    case "all":
      return parts;
  }
}

function leafResult({ do: what, id }: Leaf): unknown {
  switch (what) {
    case "flaky task":
    case "flaky operation":
      return `${what} ${id} at ${(id % 3) + 1}`;
    case "state":
      return id;
    case "wait":
      return "went";
    case "timed wait":
      return null;
    default:
      return `${what} ${id}`;
  }
}

const retry = { maxAttempts: 3, baseDelay: 50, maxDelay: 400 } as const;
const ports = { go: promise<string>(), never: promise<string>(), hint: signal<number>() };
type Ctx = WorkflowContext<typeof ports>;

function functionsOf(machine: Machine) {
  const plain = task("plain", async (_ctx, text: string) => (await machine.work(text), text));
  const lined = task("lined", { queue: LINE }, async (_ctx, text: string) => (await machine.work(text), text));
  const flaky = task("flaky", { retry }, async (ctx, id: number) => {
    await machine.work("flaky");
    if (ctx.attempt <= id % 3) throw new Error("flaky");
    return `flaky task ${id} at ${ctx.attempt}`;
  });
  const leaf = workflow("leaf", async (ctx, id: number) => `child ${await ctx.run("inner", () => id)}`);
  const stopped = workflow("stopped", async (ctx, _id: number) => {
    await ctx.sleep("1 day");
  });
  return { plain, lined, flaky, leaf, stopped };
}
const LINE = queue("line", { concurrency: 2 });

async function follow(
  ctx: Ctx,
  program: Program,
  machine: Machine,
  own: ReturnType<typeof functionsOf>,
): Promise<unknown> {
  if (isLeaf(program)) return followLeaf(ctx, program, machine, own);
  const each = (part: Program): Promise<unknown> => follow(ctx, part, machine, own);
  switch (program.do) {
    case "sequence": {
      const results: unknown[] = [];
      for (const part of program.parts) results.push(await each(part));
      return results;
    }
    case "all":
      return Promise.all(program.parts.map(each));
    case "settled":
      return Promise.allSettled(program.parts.map(each));
    case "race":
      return Promise.race(program.parts.map(each)).then(() => "raced");
    case "any":
      return Promise.any(program.parts.map(each)).then(() => "any");
    case "try":
      try {
        await each(program.parts[0]!);
        throw new Error("inside");
      } catch {
        return ["caught inside", await each(program.parts[1]!)];
      }
  }
}

async function followLeaf(
  ctx: Ctx,
  { do: what, id, ms }: Leaf,
  machine: Machine,
  own: ReturnType<typeof functionsOf>,
): Promise<unknown> {
  switch (what) {
    case "task":
      return ctx.task(own.plain, `task ${id}`);
    case "lined task":
      return ctx.task(own.lined, `lined task ${id}`);
    case "operation":
      return ctx.run("operation", id, async (_op, given) => (await machine.work("operation"), `operation ${given}`));
    case "flaky task":
      return ctx.task(own.flaky, id);
    case "flaky operation": {
      const attempt = async (op: { readonly attempt: number }): Promise<string> => {
        await machine.work("flaky");
        if (op.attempt <= id % 3) throw new Error("flaky");
        return `flaky operation ${id} at ${op.attempt}`;
      };
      return ctx.run("flaky", attempt, { retry });
    }
    case "failing":
      return ctx
        .run("failing", () => Promise.reject(new RangeError("failing")), { retry: { maxAttempts: 1 } })
        .catch(() => `failing ${id}`);
    case "child":
      return ctx.child(own.leaf, id);
    case "sleep":
      return ctx.sleep(ms).then(() => `sleep ${id}`);
    case "cancelled sleep": {
      const timer = ctx.sleep("1 day");
      if (id % 2 === 0) await ctx.run("before the cancel", () => id);
      timer.cancel();
      return timer.then(
        () => "fired",
        () => `cancelled sleep ${id}`,
      );
    }
    case "state":
      ctx.state.set(`key-${id}`, id);
      return ctx.state.get(`key-${id}`);
    case "wait":
      return ctx.promise("go");
    case "timed wait":
      return (await ctx.promise("never", { timeout: ms + 1 })) ?? null;
    case "send":
      ctx.send("outside", `${ctx.runId} ${id}`);
      return `send ${id}`;
    case "stopped child": {
      const child = ctx.child(own.stopped, id);
      await child.cancel();
      return child.then(
        () => "not stopped",
        () => `stopped child ${id}`,
      );
    }
  }
}

function leavesOf(program: Program): readonly Leaf[] {
  return isLeaf(program) ? [program] : program.parts.flatMap(leavesOf);
}

export function programsPart({ chance, scale }: PartHost): Part {
  const count = Math.max(1, Math.round(between(chance, 2, 5) * scale));
  const programs = Array.from({ length: count }, () => generate(chance, chance.pick([1, 2, 2, 3]), { next: 1 }));
  const features = new Set(programs.flatMap(leavesOf).map((leaf) => leaf.do as string));
  const idOf = (index: number): string => `program-${index}`;
  const one = async (client: Client, index: number): Promise<void> => {
    await client.sleep(chance.below(3_000));
    const id = idOf(index);
    const start = (): Promise<unknown> => client.start(id, undefined, id);
    // Started twice concurrently: it must be one run.
    await (chance.happens(0.3) ? Promise.all([start(), start()]) : start());
    await client.sleep(chance.below(2_000));
    await client.tell(`resolve go of ${id}`, (core) =>
      core.get(id as never, id).resolve("go" as never, "went" as never),
    );
  };
  return {
    name: "programs",
    features: [...features, "start"],
    definitions: (machine) => {
      const own = functionsOf(machine);
      const runs = programs.map((program, index) =>
        workflow(idOf(index), { ports }, (ctx) => follow(ctx, program, machine, own)),
      );
      return [...runs, ...Object.values(own)];
    },
    drive: async (client) => void (await Promise.all(programs.map((_program, index) => one(client, index)))),
    *judge(ends: ReadonlyMap<string, RunEnd>) {
      for (const [index, program] of programs.entries())
        yield* expectOutput(idOf(index), ends.get(idOf(index)), resultOf(program));
    },
  };
}
