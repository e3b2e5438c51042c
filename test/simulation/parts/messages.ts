// Messages: every acknowledged message must arrive once, also in runs that continue as new.

import { signal, task, update, workflow } from "reprise";
import { between, expectOutput, type Part, type PartHost } from "../part.ts";

/** Receives a number of signals and returns them. */
export function collectPart({ chance, scale }: PartHost): Part {
  const counts = Array.from({ length: Math.max(1, Math.round(2 * scale)) }, () => between(chance, 1, 6));
  const idOf = (index: number): string => `collect-${index}`;
  const payloads = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);
  return {
    name: "collect",
    features: ["signal", "early signal", "continueAsNew", "start"],
    definitions: (machine) => {
      const ports = { add: signal<number>() };
      const note = task("note", async (_ctx, n: number) => (await machine.work("note"), n));
      interface Given {
        readonly want: number;
        readonly got: readonly number[];
        readonly each: number;
      }
      const collect = workflow("collect", { ports }, async (ctx, given: Given): Promise<readonly number[]> => {
        const got = [...given.got];
        for (let taken = 0; got.length < given.want; taken += 1) {
          // Signals that were not received are passed to the next generation.
          if (taken === given.each) return ctx.continueAsNew({ ...given, got });
          got.push(await ctx.task(note, await ctx.receive("add")));
        }
        return got.toSorted((a, b) => a - b);
      });
      return [collect, note];
    },
    async drive(client) {
      const send = async (id: string, n: number): Promise<void> => {
        await client.sleep(chance.below(3_000));
        const options = { dedupId: `${id} ${n}`, beforeStart: true };
        // It may have arrived before without an acknowledgment, and the run may have ended.
        await client.tell(`signal ${n} to ${id}`, (core) =>
          core.get("collect" as never, id).signal("add" as never, n as never, options),
        );
      };
      await Promise.all(
        counts.map(async (want, index) => {
          const id = idOf(index);
          const input = { want, got: [], each: chance.pick([1, 2, 100]) };
          const sending = Promise.all(payloads(want).map((n) => send(id, n)));
          await client.sleep(chance.below(2_000));
          await client.start("collect", input, id);
          await sending;
        }),
      );
    },
    *judge(ends) {
      for (const [index, want] of counts.entries())
        yield* expectOutput(idOf(index), ends.get(idOf(index)), payloads(want));
    },
  };
}

/** Outbox messages, from runs that also do other work. */
export function outboxPart({ chance, scale }: PartHost): Part {
  const counts = Array.from({ length: Math.max(1, Math.round(2 * scale)) }, () => between(chance, 1, 5));
  const idOf = (index: number): string => `sends-${index}`;
  return {
    name: "outbox",
    features: ["send", "operation", "start"],
    definitions: (machine) => [
      workflow("sends", async (ctx, count: number) => {
        for (let n = 0; n < count; n += 1) {
          ctx.send("outside", `${ctx.runId} ${n}`);
          if (n % 2 === 0) await ctx.run("between", () => machine.work("between"));
        }
        return count;
      }),
    ],
    async drive(client) {
      await Promise.all(
        counts.map(async (count, index) => {
          await client.sleep(chance.below(2_000));
          await client.start("sends", count, idOf(index));
        }),
      );
    },
    *judge(ends) {
      for (const [index, count] of counts.entries()) yield* expectOutput(idOf(index), ends.get(idOf(index)), count);
    },
  };
}

/** Handles updates; each is handled once, however often it is sent. */
export function updatesPart({ chance }: PartHost): Part {
  const count = between(chance, 1, 5);
  const id = "adds-up";
  let isOutrun = (): boolean => false;
  return {
    name: "updates",
    features: ["update", "start"],
    definitions: (machine) => {
      const ports = { add: update<number, number>(), stop: signal() };
      return [
        workflow("adds-up", { ports }, async (ctx) => {
          let sum = 0;
          ctx.onUpdate("add", async (n) => {
            const checked = await ctx.run("check", n, async (_op, given) => (await machine.work("check"), given));
            sum += checked;
            return sum;
          });
          await ctx.receive("stop");
          return sum;
        }),
      ];
    },
    async drive(client) {
      isOutrun = () => client.crossed.has(`stop ${id}`);
      await client.start("adds-up", undefined, id);
      await Promise.all(
        Array.from({ length: count }, async (_, n) => {
          await client.sleep(chance.below(2_000));
          await client.request(`update ${n} of ${id}`, (core) =>
            core.get("adds-up" as never, id).update("add" as never, (10 ** n) as never, { dedupId: `u${n}` }),
          );
        }),
      );
      await client.tell(`stop ${id}`, (core) =>
        core.get("adds-up" as never, id).signal("stop" as never, undefined as never, { dedupId: "stop" }),
      );
    },
    *judge(ends) {
      // Stopped before the lost updates were repeated.
      const { output } = ends.get(id) ?? {};
      const isPart = typeof output === "number" && /^[01]+$/.test(String(output));
      yield* expectOutput(id, ends.get(id), isOutrun() && isPart ? output : Number("1".repeat(count)));
    },
  };
}
