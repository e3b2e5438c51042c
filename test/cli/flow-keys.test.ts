// Flows with limits per key: what show, queue and doctor say while items of a spread run and wait.

import { createEngine, flow, queue, task, typed } from "reprise";
import { expect, test } from "vitest";
import { createGate } from "../engine/world.ts";
import { command, jsonLines, TemporaryFolder } from "./cli-process.ts";

/** More than `show` reads from the queue at once. */
const BUSY = 2_400;

test("show, queue and doctor count the items that run and those that wait for their key", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("mail.db")}`;
  const on = (...args: readonly string[]) => command([...args, "--store", store]);
  const [first, last] = [createGate(), createGate()];
  const mail = queue("mail", { perKey: { concurrency: 1 } });
  const key = (n: number): string => (n < BUSY ? "busy" : "free");
  const send = task("send", { queue: mail, key }, async (_ctx, n: number) => {
    await (n < BUSY ? first : last).wait();
    return n;
  });
  const all = flow("all", { input: typed<number>() })
    .spread("sent", ["input"], ({ input }) => Array.from({ length: input }, (_, n) => n), send)
    .output(["sent"], ({ sent }) => sent.length);
  await using engine = await createEngine({ store, definitions: [all, send] });
  const run = await engine.start(all, BUSY + 1, { id: "all-1" });
  await Promise.all([first.reached, last.reached]);

  const shown = await on("show", "all-1");
  expect(shown.stdout).toMatch(/^sent +spread +0 of 2401, 2 running, 2399 queued$/m);
  const queues = jsonLines((await on("queue", "list", "--json")).stdout);
  expect(queues.find(({ name }) => name === "mail")).toMatchObject({ ready: BUSY - 1, leased: 2, paused: false });
  const doctor = await on("doctor");
  expect([doctor.code, doctor.stdout]).toEqual([0, expect.stringContaining("all integrity checks passed")]);

  await run.terminate("seen");
  first.open();
  last.open();
});
