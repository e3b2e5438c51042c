// A saga written by hand: it charges a card, waits for a person, and refunds after a refusal or a day without an answer.

import { createEngine, FatalError, promise, task, workflow } from "reprise";

export interface Booking {
  readonly guest: string;
  readonly cents: number;
}

export const charge = task(
  "charge",
  { retry: { maxAttempts: 5, baseDelay: "50ms" } },
  async (ctx, booking: Booking) => {
    // The provider recognizes a repeated call by the key: it is the same for every attempt, also after a crash.
    return { id: `payment-${ctx.idempotencyKey.slice(0, 8)}`, cents: booking.cents };
  },
);

export const refund = task("refund", async (_ctx, payment: { id: string; cents: number }) => ({
  refunded: payment.cents,
}));

export const confirm = task("confirm", async (_ctx, booking: Booking) => `confirmation for ${booking.guest}`);

export const book = workflow(
  "book",
  { ports: { decision: promise<{ ok: boolean; by: string }>() } },
  async (ctx, booking: Booking) => {
    const payment = await ctx.task(charge, booking);
    try {
      // Waiting throws nothing: only a refusal, or a day without an answer, reaches the catch below.
      const decision = await ctx.promise("decision", { timeout: "1 day", show: booking });
      if (decision === undefined) throw new FatalError("no decision within a day");
      if (!decision.ok) throw new FatalError(`refused by ${decision.by}`);
      return { status: "booked" as const, confirmation: await ctx.task(confirm, booking) };
    } catch (error) {
      const { refunded } = await ctx.task(refund, payment);
      return { status: "refunded" as const, refunded, because: error instanceof Error ? error.message : "unknown" };
    }
  },
);

export const definitions = [book, charge, refund, confirm] as const;

if (import.meta.main) {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions });
  const ann = await engine.start(book, { guest: "Ann", cents: 12_000 }, { id: "booking-1" });
  const bob = await engine.start(book, { guest: "Bob", cents: 8_000 }, { id: "booking-2" });
  await ann.resolve("decision", { ok: true, by: "Eve" });
  await bob.resolve("decision", { ok: false, by: "Eve" });
  console.log(await ann.result());
  console.log(await bob.result());
}
