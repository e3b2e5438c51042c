// Random programs with messages, shields, undo, streams, outbox, patches and generations, killed at every commit: the same
// output, one key per delivered message, every run verified, an intact store.

import { expect, test } from "vitest";
import { FatalError, promise, signal, stream, task, update, workflow, type WorkflowContext } from "reprise";
import { crashEverywhere } from "reprise/testing";
import { randomSource, type RandomSource } from "../replay/random-source.ts";

const LEAVES = [
  "task",
  "operation",
  "undone task",
  "undone operation",
  "emit",
  "send",
  "patched",
  "receive",
  "receive any",
  "wait",
  "handle",
  "talk to child",
  "stop child",
  "sleep",
] as const;
const BRANCHES = ["sequence", "all", "settled", "shield", "try"] as const;

type Program =
  | { readonly do: (typeof LEAVES)[number]; readonly id: number }
  | { readonly do: (typeof BRANCHES)[number]; readonly parts: readonly Program[] };

/** How the code ends after the program. */
const ENDS = ["returns", "throws", "continues", "continues after a throw"] as const;

function generate(chance: RandomSource, depth: number, ids: { next: number }): Program {
  if (depth > 0 && chance.happens(0.6))
    return {
      do: chance.pick(BRANCHES),
      parts: Array.from({ length: 2 + chance.below(2) }, () => generate(chance, depth - 1, ids)),
    };
  return { do: chance.pick(LEAVES), id: ids.next++ };
}

const ports = {
  go: promise<string>(),
  tick: signal<number>(),
  tock: signal<number>(),
  ask: update<number, number>(),
  shown: stream<number>(),
};
type Ctx = WorkflowContext<typeof ports, readonly unknown[]>;

const echo = task("echo", (_ctx, id: number) => `task ${id}`);
const takeBack = task("take back", (_ctx, _what: string) => {});
const hears = workflow("hears", { ports: { say: signal<number>() } }, async (ctx, id: number) => {
  const said = await ctx.receive("say", { timeout: "1 minute" });
  ctx.send("outside", `child ${id}`);
  return said ?? -1;
});

/** The result does not depend on the winner. */
async function follow(ctx: Ctx, program: Program): Promise<unknown> {
  switch (program.do) {
    case "task":
      return ctx.task(echo, program.id);
    case "operation":
      return ctx.run("operation", program.id, (_op, id) => `operation ${id}`);
    case "undone task":
      return ctx.task(echo, program.id, { undo: takeBack });
    case "undone operation":
      return ctx.run("step", () => program.id, { undo: async () => {} });
    case "emit":
      ctx.emit("shown", program.id);
      return ctx.run("between", () => 0).then(() => ctx.emit("shown", -program.id));
    case "send":
      ctx.send("outside", program.id);
      return `sent ${program.id}`;
    case "patched":
      return ctx.patched(`patch ${program.id % 2}`) ? ctx.task(echo, program.id) : "went past";
    case "receive":
      return ctx.receive("tick", { timeout: "1 minute" }).then(() => "received");
    case "receive any":
      return ctx.receive(["tick", "tock"], { timeout: "1 minute" }).then(() => "received");
    case "wait":
      return ctx.promise("go");
    case "handle":
      ctx.onUpdate("ask", async (n) => {
        const more = await ctx.run("in a handler", () => program.id);
        ctx.send("outside", `handled ${n}`);
        return n + more;
      });
      return "handles";
    case "talk to child": {
      const child = ctx.child(hears, program.id);
      await child.signal("say", program.id);
      return child;
    }
    case "stop child": {
      const child = ctx.child(hears, program.id);
      await child.cancel();
      return child.catch((error: Error) => error.name);
    }
    case "sleep":
      return ctx.sleep(program.id * 100).then(() => "slept");
    case "sequence": {
      const results: unknown[] = [];
      for (const part of program.parts) results.push(await follow(ctx, part));
      return results;
    }
    case "all":
      return Promise.all(program.parts.map((part) => follow(ctx, part)));
    case "settled":
      return Promise.allSettled(program.parts.map((part) => follow(ctx, part)));
    case "shield":
      return ctx.shield(() => Promise.all(program.parts.map((part) => follow(ctx, part))));
    case "try":
      try {
        await follow(ctx, program.parts[0]!);
        throw new FatalError("inside");
      } catch (error) {
        return [String(error), await follow(ctx, program.parts[1]!)];
      }
  }
}

const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 12);
const FIRST = Number(process.env["REPRISE_FIRST_SEED"] ?? 1);

test(
  "random programs of the whole surface come out the same wherever they are killed",
  { timeout: 600_000 },
  async () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
      const chance = randomSource(seed);
      const program = generate(chance, 2, { next: 1 });
      const end = chance.pick(ENDS);
      const inner = workflow("inner", { ports }, async (ctx, before: readonly unknown[]): Promise<unknown> => {
        if (before.length > 0) return [...before, await ctx.task(echo, 0)];
        const result = await follow(ctx, program);
        if (end === "returns") return [result];
        if (end === "continues") return ctx.continueAsNew([result]);
        await ctx.run("last", () => 1, { undo: async () => {} });
        if (end === "continues after a throw") void ctx.continueAsNew(["went on"]);
        throw new FatalError("at the end");
      });
      // Survives the failure of the other branch, and returns its result.
      const outer = workflow("outer", async (ctx) =>
        ctx.child(inner, [], { id: "inner" }).catch((error: Error) => `failed: ${error.message}`),
      );
      const keys = new Map<string, Set<string>>();
      const outcome = await crashEverywhere(outer, undefined, {
        definitions: [inner, echo, takeBack, hears],
        outbox: {
          outside: (payload, dedupKey) => {
            const said = JSON.stringify(payload);
            keys.set(said, (keys.get(said) ?? new Set()).add(dedupKey));
          },
        },
        drive: async (engine) => {
          const run = engine.get("inner" as never, "inner") as unknown as Record<
            string,
            (...args: unknown[]) => Promise<unknown>
          >;
          const early = { beforeStart: true };
          const over = (error: { code?: string }): void =>
            expect(error.code).toMatch(/RUN_ENDED|ALREADY_RESOLVED|ENGINE_CLOSED/);
          await run["resolve"]!("go", "went", early).catch(over);
          await run["signal"]!("tick", 1, { ...early, dedupId: "1" }).catch(over);
          // There may be no sender: the run then ends without a message.
          run["update"]!("ask", 1, { dedupId: "2" }).catch(() => {});
          await run["signal"]!("tock", 2, { ...early, dedupId: "3" }).catch(over);
        },
      }).catch((error: unknown) => error as Error);
      const what = `seed ${seed}, ${end}: ${JSON.stringify(program)}`;
      expect(outcome, what).not.toBeInstanceOf(Error);
      for (const [said, under] of keys) expect(under.size, `${what}: ${said}`).toBe(1);
    }
  },
);
