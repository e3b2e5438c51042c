// Control: runs that are cancelled, paused and resumed, or retried after they have failed.

import { FatalError, task, workflow } from "reprise";
import { between, expectOutput, type Part, type PartHost } from "../part.ts";

const idOf = (name: string, index: number): string => `${name}-${index}`;

/** Cancelled at some point: the run undoes its steps and ends as cancelled, or as completed when the cancel came too late. */
export function cancelPart({ chance, scale }: PartHost): Part {
  const count = Math.max(1, Math.round(between(chance, 1, 3) * scale));
  const steps = Array.from({ length: count }, () => between(chance, 1, 5));
  return {
    name: "cancel",
    features: ["cancel", "undo", "task", "start"],
    definitions: (machine) => {
      const step = task("step", async (_ctx, n: number) => (await machine.work("step"), n));
      const undone = task("undone", async (_ctx, _n: number) => machine.work("undone"));
      const long = workflow("long", async (ctx, upTo: number) => {
        for (let n = 1; n <= upTo; n += 1) {
          await ctx.task(step, n, { undo: undone });
          await ctx.sleep(100);
        }
        return "done";
      });
      return [long, step, undone];
    },
    async drive(client) {
      await Promise.all(
        steps.map(async (upTo, index) => {
          const id = idOf("long", index);
          await client.sleep(chance.below(1_000));
          await client.start("long", upTo, id);
          await client.sleep(chance.below(1_500));
          await client.tell(`cancel ${id}`, (core) => core.get("long" as never, id).cancel());
        }),
      );
    },
    *judge(ends) {
      for (const index of steps.keys()) {
        const id = idOf("long", index);
        const end = ends.get(id);
        const status = end?.record.status;
        if (status === "completed") yield* expectOutput(id, end, "done");
        else if (status !== "cancelled")
          yield `run ${id} was cancelled and is ${status ?? "not there"}: ${end?.error ?? ""}`;
        if (end === undefined) continue;
        // A step and its undo are two tasks in the journal.
        const tasks = end.journal.filter(({ type }) => type === "TaskCompleted").length;
        if (status === "completed" && tasks !== steps[index])
          yield `run ${id} has ${tasks} tasks, expected ${steps[index]}`;
      }
    },
  };
}

/** Fails until its cause is removed, then is retried; completed steps do not run again. */
export function retryPart({ chance, scale }: PartHost): Part {
  const count = Math.max(1, Math.round(between(chance, 1, 2) * scale));
  /** The steps that no longer fail, by run. */
  const mended = new Set<number>();
  const indexes = Array.from({ length: count }, (_, index) => index);
  return {
    name: "retry",
    features: ["run.retry", "pause", "resume", "start"],
    definitions: (machine) => {
      const fragile = task("fragile", async (_ctx, n: number) => {
        await machine.work("fragile");
        if (!mended.has(n)) throw new FatalError("broken");
        return n;
      });
      const retried = workflow("retried", async (ctx, n: number) => {
        const before = await ctx.run("before", () => n);
        await ctx.sleep(50);
        return [before, await ctx.task(fragile, n)];
      });
      return [fragile, retried];
    },
    async drive(client) {
      await Promise.all(
        indexes.map(async (index) => {
          const id = idOf("retried", index);
          await client.start("retried", index, id);
          if (chance.happens(0.5)) {
            await client.sleep(chance.below(300));
            await client.tell(`pause ${id}`, (core) => core.get("retried" as never, id).pause());
            await client.sleep(chance.below(1_000));
            await client.tell(`resume ${id}`, (core) => core.get("retried" as never, id).resume());
          }
          // It fails sooner or later; and again, when a rollback undoes the retry.
          for (;;) {
            const info = await client.ask(`look at ${id}`, (core) => core.find(id));
            if (info?.status === "completed" && client.isSettled) break;
            if (info?.status === "failed") {
              mended.add(index);
              await client.tell(`retry ${id}`, (core) => core.get("retried" as never, id).retry());
            }
            if (info?.status === "blocked" || info?.status === "paused")
              await client.tell(`resume ${id}`, (core) => core.get("retried" as never, id).resume());
            await client.sleep(300);
          }
        }),
      );
    },
    *judge(ends) {
      for (const index of indexes)
        yield* expectOutput(idOf("retried", index), ends.get(idOf("retried", index)), [index, index]);
    },
  };
}
