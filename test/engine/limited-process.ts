// A worker of a queue with four slots, which notes in a file when a function starts and ends. With a count it kills itself at that call.

import { appendFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { createEngine, queue, task, workflow } from "reprise";
import { storeOf } from "../../src/stores/store-url.ts";

export const SLOTS = 4;
const narrow = queue("narrow", { concurrency: SLOTS });
const [, , url = "", file = "", kill] = process.argv;
let calls = 0;
const note = (what: string): void => appendFileSync(file, `${what} ${process.pid}\n`);

const job = task("job", { queue: narrow }, async (_ctx, n: number) => {
  note("start");
  calls += 1;
  await setImmediate();
  if (calls === Number(kill)) {
    note("kill");
    process.kill(process.pid, "SIGKILL");
  }
  await setImmediate();
  note("end");
  return n;
});
export const asks = workflow("asks", async (ctx, n: number) => ctx.task(job, n));

if (url !== "") {
  const engine = await createEngine({ store: storeOf(url), definitions: [asks, job], worker: { lease: 1_000 } });
  process.send?.("ready");
  process.on("message", () => {
    void engine.close().then(() => process.exit(0));
  });
}
