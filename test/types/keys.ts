// The `key` option precedes the function, and does not disturb the inference of its input and output.

import { z } from "zod";
import { createEngine, queue, signal, task, workflow, type Task, type Workflow, type WorkflowContext } from "reprise";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void {}

interface Order {
  customer: string;
  cents: number;
}

const orders = queue("orders", { perKey: { concurrency: 1 } });

// ── workflows ──

const unannotated = workflow(
  "unannotated",
  { queue: orders, key: (input) => input.customer },
  async (ctx, order: Order) => {
    same<typeof order, Order>();
    if (order.cents > 100) return ctx.continueAsNew({ ...order, cents: 1 });
    return [order.cents];
  },
);
same<typeof unannotated, Workflow<"unannotated", Order, number[]>>();

const annotated = workflow(
  "annotated",
  { key: (order: Order) => order.customer, queue: orders },
  async (_ctx, order: Order) => order.cents,
);
same<typeof annotated, Workflow<"annotated", Order, number>>();

const fromKey = workflow("from key", { queue: orders, key: (order: Order) => order.customer }, async (_ctx, order) => {
  same<typeof order, Order>();
  return order.cents;
});
same<typeof fromKey, Workflow<"from key", Order, number>>();

const widerKey = workflow(
  "wider key",
  { queue: orders, key: (order: { customer: string }) => order.customer },
  async (_ctx, order: Order) => order.cents,
);
same<typeof widerKey, Workflow<"wider key", Order, number>>();

const constantKey = workflow("constant key", { queue: orders, key: () => "one" }, async () => "done");
same<typeof constantKey, Workflow<"constant key", void, string>>();

const withPorts = workflow(
  "with ports",
  { ports: { paid: signal<number>() }, queue: orders, key: (input) => input.customer },
  async (ctx, order: Order) => ({ order, paid: await ctx.receive("paid") }),
);
same<
  typeof withPorts,
  Workflow<"with ports", Order, { order: Order; paid: number }, { paid: ReturnType<typeof signal<number>> }>
>();

const withSchema = workflow(
  "with schema",
  {
    input: z.object({ customer: z.string(), cents: z.coerce.number() }),
    queue: orders,
    key: (input) => {
      same<typeof input, Order>();
      return input.customer;
    },
  },
  async (_ctx, order) => {
    same<typeof order, Order>();
    return order.cents;
  },
);
same<typeof withSchema, Workflow<"with schema", { customer: string; cents: unknown }, number>>();

// ── tasks ──

const unannotatedTask = task(
  "unannotated",
  { queue: orders, key: (input) => input.customer },
  async (_ctx, order: Order) => order.cents,
);
same<typeof unannotatedTask, Task<"unannotated", Order, number>>();

const annotatedTask = task(
  "annotated",
  { queue: orders, key: (order: Order) => order.customer },
  (_ctx, order: Order) => order.customer,
);
same<typeof annotatedTask, Task<"annotated", Order, string>>();

const fromKeyTask = task(
  "from key",
  { queue: orders, key: (order: Order) => order.customer },
  (_ctx, order) => order.cents,
);
same<typeof fromKeyTask, Task<"from key", Order, number>>();

const eitherTask = task("either", { queue: orders, key: () => "one" }, (_ctx, fast: boolean) =>
  fast ? "now" : Promise.resolve(1),
);
same<typeof eitherTask, Task<"either", boolean, "now" | number>>();

const schemaTask = task(
  "with schema",
  {
    input: z.object({ n: z.coerce.number() }),
    queue: orders,
    key: ({ n }) => {
      same<typeof n, number>();
      return `${n}`;
    },
    retry: { maxAttempts: 2 },
  },
  (_ctx, { n }) => n,
);
same<typeof schemaTask, Task<"with schema", { n: unknown }, number>>();

// ── calls ──

export async function starts(): Promise<void> {
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [unannotated, annotated, fromKey, widerKey, constantKey, withPorts, withSchema, annotatedTask],
  });
  const order: Order = { customer: "ann", cents: 1 };
  const run = await engine.start(unannotated, order);
  const cents = await run.result();
  same<typeof cents, number[]>();
  await engine.start(constantKey);
  await engine.start(withSchema, { customer: "ann", cents: "1" });
  // @ts-expect-error the input is an order
  await engine.start(unannotated, { customer: "ann" });
  // @ts-expect-error the input is required
  await engine.start(unannotated);
  // @ts-expect-error the schema takes a customer
  await engine.start(withSchema, { cents: 1 });
}

// ── rejections ──

// @ts-expect-error the key takes another input than the function
workflow("w", { queue: orders, key: (n: number) => `${n}` }, async (_ctx, order: Order) => order.cents);
// @ts-expect-error the key takes another input than the function
task("t", { queue: orders, key: (n: number) => `${n}` }, (_ctx, order: Order) => order.cents);
// @ts-expect-error a key is text
workflow("w", { queue: orders, key: (input) => input.a === 1 }, async (_ctx, order: Order) => order.cents);
// @ts-expect-error a key is text
task("t", { queue: orders, key: () => 1 }, (_ctx, order: Order) => order.cents);
// @ts-expect-error the parsed input has no such field
workflow("w", { input: z.object({ n: z.number() }), queue: orders, key: ({ m }) => m }, async (_ctx, { n }) => n);
// @ts-expect-error the function takes another input than the schema gives
workflow("w", { input: z.object({ n: z.number() }), queue: orders }, async (_ctx, order: Order) => order.cents);
// @ts-expect-error an unknown option
workflow("w", { queue: orders, keys: () => "one" }, async (_ctx, order: Order) => order.cents);

// ── helpers ──

/** A function of its own takes the context of any workflow. */
async function notify(ctx: WorkflowContext, text: string): Promise<string> {
  return ctx.run("notify", () => text);
}
export const helped = workflow("helped", async (ctx, order: Order) => notify(ctx, order.customer));
export const helpedWithPorts = workflow("helped too", { ports: { go: signal<number>() } }, async (ctx, n: number) =>
  notify(ctx, String(n)),
);
