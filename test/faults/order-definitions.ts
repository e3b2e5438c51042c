// Orders: a workflow whose every value contains the mark of its run, so that a journal with data of two runs is detected.

import { signal, task, workflow } from "reprise";

const pack = task("pack", (_ctx, mark: string) => `packed ${mark}`);
const label = workflow("label", async (ctx, mark: string) => ctx.run("print", () => `labeled ${mark}`));

/** The workflow of a shop: charge a card, pack and label, wait for a signal, ship. */
export const order = workflow("order", { ports: { go: signal<string>() } }, async (ctx, mark: string) => {
  const charged = await ctx.run("charge", mark, (_op, given) => `charged ${given}`);
  const [packed, labeled] = await Promise.all([ctx.task(pack, mark), ctx.child(label, mark)]);
  await ctx.sleep(20);
  const received = await ctx.receive("go");
  const shipped = await ctx.run("ship", () => `shipped ${mark}`);
  return [charged, packed, labeled, received, shipped];
});

export const ORDERS = [order, pack, label] as const;

/** The result of `order` for a mark. */
export function resultOf(mark: string): unknown {
  return ["charged", "packed", "labeled", "notified", "shipped"].map((what) => `${what} ${mark}`);
}
