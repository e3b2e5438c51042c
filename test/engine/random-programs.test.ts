// ACCEPTANCE 37 and 38 with random programs: killed at every commit, each ends with the same output and replays.

import { expect, test } from "vitest";
import { promise, task, workflow, type WorkflowContext } from "reprise";
import { crashEverywhere } from "reprise/testing";
import { macrotask } from "./world.ts";

/** A small generator, so that a failing seed can be repeated. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Program =
  | {
      readonly do: "task" | "operation" | "flaky-task" | "flaky-operation" | "failing" | "child";
      readonly id: number;
      readonly turns: number;
    }
  | { readonly do: "sleep"; readonly id: number; readonly ms: number }
  | { readonly do: "cancelled-sleep" | "state" | "draw" | "wait" | "timed-wait"; readonly id: number }
  | { readonly do: "sequence" | "all" | "settled" | "race" | "any"; readonly parts: readonly Program[] };

const LEAVES = [
  "task",
  "operation",
  "flaky-task",
  "flaky-operation",
  "failing",
  "child",
  "sleep",
  "cancelled-sleep",
  "state",
  "draw",
  "wait",
  "timed-wait",
] as const;
const BRANCHES = ["sequence", "all", "settled", "race", "any"] as const;

function generate(draw: (below: number) => number, depth: number, ids: { next: number }): Program {
  if (depth > 0 && draw(3) > 0) {
    const kind = BRANCHES[draw(BRANCHES.length)] ?? "all";
    return { do: kind, parts: Array.from({ length: 2 + draw(2) }, () => generate(draw, depth - 1, ids)) };
  }
  const kind = LEAVES[draw(LEAVES.length)] ?? "task";
  const id = ids.next++;
  if (kind === "sleep") return { do: kind, id, ms: draw(4) * 1_000 };
  if (kind === "cancelled-sleep" || kind === "state" || kind === "draw" || kind === "wait" || kind === "timed-wait")
    return { do: kind, id };
  return { do: kind, id, turns: draw(3) };
}

async function after<T>(turns: number, value: T): Promise<T> {
  for (let turn = 0; turn < turns; turn += 1) await macrotask();
  return value;
}

const retry = { maxAttempts: 3, baseDelay: "10s" } as const;
const echo = task("echo", (_ctx, { id, turns }: { id: number; turns: number }) => after(turns, `task ${id}`));
const flaky = task("flaky", { retry }, async (ctx, { id, turns }: { id: number; turns: number }) => {
  if (ctx.attempt <= id % 3) throw new Error(`flaky ${id}`);
  return after(turns, `flaky task ${id} at ${ctx.attempt}`);
});
const leaf = workflow("leaf", async (ctx, id: number) => `child ${await ctx.run("inner", () => id)}`);
const ports = { go: promise<string>(), never: promise<string>() };

/** The result does not depend on the winner: a race only signals its end. */
async function run(ctx: WorkflowContext<typeof ports>, program: Program): Promise<unknown> {
  switch (program.do) {
    case "task":
      return ctx.task(echo, { id: program.id, turns: program.turns });
    case "operation":
      return ctx.run("operation", { id: program.id }, (_op, { id }) => after(program.turns, `operation ${id}`));
    case "flaky-task":
      return ctx.task(flaky, { id: program.id, turns: program.turns });
    case "flaky-operation":
      return ctx.run(
        "flaky",
        async (op) => {
          if (op.attempt <= program.id % 3) throw new Error("flaky");
          return after(program.turns, `flaky operation ${program.id} at ${op.attempt}`);
        },
        { retry },
      );
    case "failing":
      return ctx
        .run("failing", () => Promise.reject(new RangeError(`failing ${program.id}`)))
        .catch((error: unknown) => String(error));
    case "child":
      return ctx.child(leaf, program.id);
    case "sleep":
      return ctx.sleep(program.ms).then(() => `slept ${program.id}`);
    case "cancelled-sleep": {
      const timer = ctx.sleep("1 day");
      if (program.id % 2 === 0) await ctx.run("before the cancel", () => program.id);
      timer.cancel();
      return timer.then(
        () => "fired",
        () => `cancelled ${program.id}`,
      );
    }
    case "state":
      ctx.state.set(`key-${program.id}`, program.id);
      return ctx.state.get(`key-${program.id}`);
    case "draw":
      return typeof ctx.random() === "number" && ctx.uuid().length;
    case "wait":
      return ctx.promise("go");
    case "timed-wait":
      return ctx.promise("never", { timeout: 500 + program.id });
    case "sequence": {
      const results: unknown[] = [];
      for (const part of program.parts) results.push(await run(ctx, part));
      return results;
    }
    case "all":
      return Promise.all(program.parts.map((part) => run(ctx, part)));
    case "settled":
      return Promise.allSettled(program.parts.map((part) => run(ctx, part)));
    case "race":
      return Promise.race(program.parts.map((part) => run(ctx, part))).then(() => "raced");
    case "any":
      return Promise.any(program.parts.map((part) => run(ctx, part))).then(() => "any");
  }
}

const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 25);
const FIRST = Number(process.env["REPRISE_FIRST_SEED"] ?? 1);

test("ACCEPTANCE 37: random programs have the same output wherever they are killed", { timeout: 600_000 }, async () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const program = generate(seeded(seed * 7_919), 3, { next: 0 });
    const random = workflow("random", { ports }, async (ctx) => run(ctx, program));
    const outcome = await crashEverywhere(random, undefined, {
      definitions: [echo, flaky, leaf],
      drive: async (engine, id) => {
        const settled = engine.get(random, id).resolve("go", "went");
        // A program that waits for nothing may have ended.
        await settled.catch((error: { code?: string }) => expect(error.code).toBe("RUN_ENDED"));
      },
    }).catch((error: unknown) => error as Error);
    expect(outcome, `seed ${seed}: ${JSON.stringify(program)}`).not.toBeInstanceOf(Error);
  }
});
