// Real processes that are killed while they pay: a ledger outside of the engine never passes the cap.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, workflow } from "reprise";
import { expect, test } from "vitest";

const CAP = 8;
const parent = workflow("parent", async () => "done");

test("workers killed in the middle of paid calls: what the ledger says stays within the cap", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reprise-budgets-"));
  const [store, ledger] = [`sqlite:${join(folder, "agent.db")}`, join(folder, "ledger")];
  const paid = (): number => (existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n").length - 1 : 0);
  const start = (...calm: readonly string[]): ChildProcess =>
    fork(new URL("./budget-worker.ts", import.meta.url), [store, ledger, ...calm], {
      execArgv: ["--conditions=reprise-source"],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
  await using client = await createClient({ store, definitions: [parent], logger: false });
  const run = client.get(parent, "agent");
  const asks = async (): Promise<boolean> =>
    (await client.find("agent")) !== undefined && ((await run.budget())?.waiting.length ?? 0) > 0;
  let kills = 0;
  for (let isOver = false; !isOver && kills < 20;) {
    const worker = start();
    const died = once(worker, "exit").then(() => false);
    const waits = expect
      .poll(asks, { interval: 20, timeout: 30_000 })
      .toBe(true)
      .then(
        () => true,
        () => false,
      );
    isOver = await Promise.race([died, waits]);
    if (!isOver) kills += 1;
    expect(paid()).toBeLessThanOrEqual(CAP);
    if (isOver) worker.kill("SIGKILL");
  }
  expect(kills).toBeGreaterThan(2);
  const { spent, lost, cap } = (await run.budget())!;
  expect(cap).toEqual({ calls: CAP });
  expect((spent.calls ?? 0) + (lost.calls ?? 0)).toBeGreaterThanOrEqual(paid());
  await run.raise({ calls: 20 }, { by: "the test" });
  const calm = start("calm");
  expect(await run.result({ timeout: "30 s" })).toBe("done");
  calm.disconnect();
  await once(calm, "exit");
  expect(paid()).toBeLessThanOrEqual(CAP + 20);
  await rm(folder, { recursive: true, force: true });
});
