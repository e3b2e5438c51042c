// Definitions for the tests of the command line.

import { FatalError, promise, query, signal, stream, task, update, workflow } from "reprise";
import { z } from "zod";

export const charge = task("charge", { retry: { maxAttempts: 3, baseDelay: 20 } }, (ctx, cents: number) => {
  if (ctx.attempt === 1) throw new Error("no answer\u001b[31m\nfrom the card network");
  return { paid: cents };
});

export const pay = workflow("pay", async (ctx, cents: number) => {
  const { paid } = await ctx.task(charge, cents);
  await ctx.sleep(20);
  ctx.state.set("paid", BigInt(paid));
  const label = await ctx.run("label", () => `L-${paid}\u001b[2J`);
  return { label, at: new Date(0) };
});

export const refuse = workflow("refuse", async (ctx) => {
  await ctx.run("ask", () => {
    throw new FatalError("not today\u0007");
  });
});

export const booking = workflow("booking", async (ctx) => {
  await ctx.run("reserve", () => "seat 7", { undo: async () => {} });
  await ctx.run("pay", () => {
    throw new FatalError("card declined");
  });
});

export const review = workflow("review", { ports: { approval: promise<{ ok: boolean }>() } }, async (ctx) => {
  const reminder = ctx.sleep("1 hour");
  const approval = await ctx.promise("approval", { timeout: "1 day" });
  reminder.cancel();
  return approval?.ok ?? false;
});

export const order = workflow(
  "order",
  { ports: { payment: promise(z.object({ cents: z.number().int() })) } },
  async (ctx) => {
    await ctx.sleep("1 day");
    return ctx.promise("payment");
  },
);

export const cart = workflow(
  "cart",
  {
    ports: {
      add: signal(z.object({ sku: z.string() })),
      checkout: signal(),
      said: stream<string>(),
      count: query<number>(),
      drop: update<string, number>(z.string()),
    },
  },
  async (ctx) => {
    const skus: string[] = [];
    ctx.onQuery("count", () => skus.length);
    ctx.onUpdate("drop", (sku) => {
      if (!skus.includes(sku)) throw new RangeError(`there is no ${sku}`);
      return skus.splice(skus.indexOf(sku), 1).length;
    });
    for (;;) {
      const message = await ctx.receive(["add", "checkout"], { timeout: "1 day" });
      if (message?.name !== "add") return skus;
      skus.push(message.value.sku);
      ctx.emit("said", `got ${message.value.sku}`);
    }
  },
);

export const pages = workflow("pages", async (ctx, left: number): Promise<string> => {
  await ctx.run(`page ${left}`, () => left);
  if (left > 0) return ctx.continueAsNew(left - 1);
  await ctx.sleep("1 hour");
  return "read";
});

export const many = workflow("many", async (ctx, count: number) => {
  for (let index = 0; index < count; index += 1) ctx.state.set(`key-${index}`, "x".repeat(200));
  return count;
});

/** Prints "step running", then waits until its process receives a signal, or forever. */
export const slow = workflow("slow", async (ctx, until: "signaled" | "killed") =>
  ctx.run("work", () => {
    process.stderr.write("step running\n");
    return new Promise<string>((resolve) => {
      if (until === "killed") return;
      for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => setImmediate(resolve, "worked"));
    });
  }),
);

export const greet = workflow("greet", async (_ctx, name: string | undefined) => `Hello, ${name ?? "stranger"}`);

const unexported = task("unexported", () => 1);
export const incomplete = workflow("incomplete", async (ctx) => ctx.task(unexported));

/** Not a definition, so it is ignored. */
export const LIMIT = 3;
