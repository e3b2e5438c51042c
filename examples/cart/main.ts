// A shopping cart as a run: signals add items, a query reads the total, updates change the cart and return a value.

import { createEngine, FatalError, query, signal, task, update, workflow } from "reprise";

export interface Item {
  readonly sku: string;
  readonly cents: number;
}

export const bill = task("bill", { retry: { maxAttempts: 5, baseDelay: "50ms" } }, async (ctx, cents: number) => {
  // The provider recognizes a repeated call by the key: it is the same for every attempt, also after a crash.
  return { receipt: `receipt-${ctx.idempotencyKey.slice(0, 8)}`, cents };
});

export const cart = workflow(
  "cart",
  {
    ports: {
      add: signal<Item>(),
      voucher: update<string, number>(),
      checkout: update<void, { receipt: string; cents: number }>(),
      total: query<number>(),
    },
  },
  async (ctx) => {
    const items: Item[] = [];
    let discount = 0;
    const total = (): number => items.reduce((sum, { cents }) => sum + cents, 0) - discount;
    const sold = Promise.withResolvers<{ receipt: string; cents: number }>();
    let billing: Promise<{ receipt: string; cents: number }> | undefined;

    ctx.onQuery("total", total);
    ctx.onUpdate("voucher", (code) => {
      if (code !== "SPRING") throw new FatalError(`there is no voucher ${code}`);
      discount = Math.round(total() / 10);
      return total();
    });
    ctx.onUpdate("checkout", async () => {
      const receipt = await (billing ??= ctx.task(bill, total()));
      sold.resolve(receipt);
      return receipt;
    });

    const fill = async (): Promise<undefined> => {
      for (;;) {
        const item = await ctx.receive("add", { timeout: "1 hour" });
        if (item !== undefined) items.push(item);
        else if (items.length === 0) return undefined;
      }
    };
    const bought = await Promise.race([sold.promise, fill()]);
    if (bought === undefined) return { status: "abandoned" as const };
    return { status: "bought" as const, items: items.length, ...bought };
  },
);

export const definitions = [cart, bill] as const;

if (import.meta.main) {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions });
  const run = await engine.start(cart, undefined, { id: "cart-7", signals: { add: { sku: "lamp", cents: 4_900 } } });
  await run.signal("add", { sku: "bulb", cents: 600 }, { dedupId: "click-2" });
  console.log("total", await run.query("total"));
  console.log("no such voucher:", await run.update("voucher", "WINTER").catch((error: Error) => error.message));
  console.log("with a voucher", await run.update("voucher", "SPRING"));
  const { cents } = await run.update("checkout", undefined, { dedupId: "checkout" });
  console.log("paid", cents);
  console.log(await run.result());
}
