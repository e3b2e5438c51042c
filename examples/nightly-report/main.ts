// A report for every planned time. A report that runs late, catches up or is backfilled still covers its planned time.

import { createEngine, task, workflow } from "reprise";

const send = task("send", { retry: { maxAttempts: 3 } }, (ctx, mail: { to: string; text: string }) => {
  // A mail service that receives the same key twice sends one mail.
  return `mail ${ctx.idempotencyKey.slice(0, 8)} to ${mail.to}: ${mail.text}`;
});

export const report = workflow("report", async (ctx, to: string) => {
  // The run's id is `nightly/2026-11-16T03:00:00Z`: the planned time, whenever the run executes.
  const planned = ctx.runId.split("/").at(-1) ?? "";
  const sales = await ctx.run("count sales", planned, (_op, until) => ({ until, count: until.length * 7 }));
  return ctx.task(send, { to, text: `${sales.count} sales until ${sales.until}` });
});

export const definitions = [report, send];

if (import.meta.main) {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions });

  // In production: { cron: "0 3 * * *", timeZone: "Europe/Berlin", overlap: "queue", catchUp: "all" }
  const nightly = await engine.schedule("nightly", report, "ann", { every: "1 s", overlap: "queue", catchUp: "all" });

  // Three planned times passed before the schedule existed.
  const { createdAt } = await nightly.info();
  const from = new Date(createdAt.getTime() - 3_000);
  console.log(`${(await nightly.backfill(from, createdAt)).count} reports are backfilled`);

  const mails: string[] = [];
  while (mails.length < 5) {
    const found: string[] = [];
    for await (const { id } of engine.list({ tag: "schedule:nightly", status: "completed" }))
      found.unshift(await engine.get(report, id).result());
    for (const mail of found.slice(mails.length)) console.log(mail);
    mails.splice(0, mails.length, ...found);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await nightly.remove();
}
