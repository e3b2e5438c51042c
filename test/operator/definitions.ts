// Definitions of the incidents. Files in the working directory decide how steps behave: `go`, `fixed`, `calls`.

import { appendFileSync, existsSync, readFileSync, watch } from "node:fs";
import { promise, queue, task, workflow } from "reprise";

/** Resolves when the file exists. */
function untilFile(name: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(".", () => check());
    const check = (): void => {
      if (!existsSync(name)) return;
      watcher.close();
      resolve();
    };
    check();
  });
}

function dieUnless(file: string): void {
  if (!existsSync(file)) process.kill(process.pid, "SIGKILL");
}

const mail = queue("mail", { concurrency: 1 });

export const send = task("send", { queue: mail }, async (_ctx, to: string) => {
  console.log(`sending to ${to}`);
  if (to === "slow") await untilFile("go");
  return `sent to ${to}`;
});
export const letter = workflow("letter", async (ctx, to: string) => ctx.task(send, to));

export const poison = workflow("poison", async (ctx) => ctx.run("parse", () => dieUnless("fixed")));

export const long = workflow("long", async (ctx) =>
  ctx.run("convert", async () => {
    console.log("converting");
    await untilFile("go");
    return "converted";
  }),
);

export const approval = workflow("approval", { ports: { approve: promise<boolean>() } }, async (ctx) =>
  ctx.promise("approve", { show: "order 7 for 90 EUR" }),
);
export const shop = workflow("shop", async (ctx) => ctx.child(approval, undefined, { id: "approval-1" }));

function callCardNetwork(): string {
  if (!existsSync("fixed")) throw new Error("the card network does not answer");
  return "charged";
}
/** Its second attempt starts long after the test has ended. */
export const chargeLater = task(
  "chargeLater",
  { retry: { maxAttempts: 2, baseDelay: "1 hour", maxDelay: "2 hours" } },
  callCardNetwork,
);
export const charge = task("charge", { retry: { maxAttempts: 2, baseDelay: "10 ms" } }, callCardNetwork);
export const paysLater = workflow("paysLater", async (ctx) => ctx.task(chargeLater, undefined));
export const pays = workflow("pays", async (ctx) => ctx.task(charge, undefined));

/** Calls out, and dies after the first call, before its result can be committed. */
export const notifies = workflow("notifies", async (ctx) =>
  ctx.run("call", (op) => {
    appendFileSync("calls", `${op.idempotencyKey}\n`);
    const calls = readFileSync("calls", "utf8").trimEnd().split("\n");
    if (calls.length === 1) process.kill(process.pid, "SIGKILL");
    return calls.length;
  }),
);

/** Commits steps until the file exists. */
export const steps = workflow("steps", async (ctx) => {
  for (let n = 0; ; n += 1) {
    const isOver = await ctx.run("step", () => existsSync("go"));
    if (isOver) return n > 0;
    await ctx.run("write", () => "x".repeat(20_000));
  }
});
