// A saga: it holds seats, charges a card and waits for a person. If it fails or its deadline passes, every completed step
// is undone, the last one first.

import { createEngine, FatalError, promise, task, workflow } from "reprise";

export interface Order {
  readonly id: string;
  readonly seats: number;
  readonly cents: number;
}
interface Payment {
  readonly payment: string;
}

/** The calls that the outside has received, by key: a repeated call changes nothing. */
export const ledger = new Map<string, string>();

export const charge = task("charge", { retry: { maxAttempts: 5, baseDelay: "50ms" } }, async (ctx, order: Order) => {
  ledger.set(ctx.idempotencyKey, `charged ${order.cents}`);
  return { payment: ctx.idempotencyKey };
});
export const refund = task("refund", { retry: { maxAttempts: 20 } }, async (_ctx, { payment }: Payment) => {
  ledger.set(payment, "refunded");
});

export const checkout = workflow(
  "checkout",
  { ports: { approval: promise<{ ok: boolean; by: string }>() } },
  async (ctx, order: Order) => {
    const seats = await ctx.run("hold seats", () => ({ hold: `hold-${order.id}` }), {
      undo: async ({ hold }) => `released ${hold}`,
    });
    const { payment } = await ctx.task(charge, order, { undo: refund });
    const { ok, by } = await ctx.promise("approval", { show: order });
    if (!ok) throw new FatalError(`refused by ${by}`);
    return { ticket: await ctx.run("print tickets", () => `${seats.hold} for ${payment.slice(0, 8)}`), by };
  },
);

/** Starts one checkout as a child and returns how it ended, also when the child failed. */
export const order = workflow("order", async (ctx, wanted: Order) => {
  try {
    const { by } = await ctx.child(checkout, wanted, { id: `checkout-${wanted.id}`, deadline: "2 days" });
    return { status: "sold" as const, by };
  } catch (error) {
    return { status: "taken back" as const, because: error instanceof Error ? error.message : "unknown" };
  }
});

export const definitions = [order, checkout, charge, refund] as const;

if (import.meta.main) {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions });
  const [first, second] = [
    await engine.start(order, { id: "1", seats: 2, cents: 9_800 }),
    await engine.start(order, { id: "2", seats: 1, cents: 4_900 }),
  ];
  for (const [id, ok] of [
    ["1", true],
    ["2", false],
  ] as const)
    await engine.get(checkout, `checkout-${id}`).resolve("approval", { ok, by: "Eve" }, { beforeStart: true });
  console.log(await first.result());
  console.log(await second.result());
  console.log([...ledger.values()]);
}
