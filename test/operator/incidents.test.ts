// Ten incidents, as an operator meets them: `reprise show <id>` names the cause and the remedy, and the suggested command works.

import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isInstalled, ROOT } from "../cli/cli-process.ts";
import { Incident } from "./incident.ts";

/** `show` prints for a terminal of 80 columns. */
const hasTerminal = isInstalled("script");
/** A loaded machine starts a command in seconds. */
const POLL = { timeout: 90_000 };

describe.skipIf(!hasTerminal)("show names the cause and the remedy:", { timeout: 60_000 }, () => {
  test("a paused queue", async () => {
    await using here = new Incident();
    await here.worker();
    await here.on("queue", "pause", "mail");
    await here.start("letter-1", "letter", { input: "ann" });
    await expect.poll(async () => (await here.show("letter-1")).json["status"], POLL).toBe("waiting");
    const { words, json, next } = await here.show("letter-1");
    expect(words).toMatch(/now Queue mail has been paused for \S+ m?s; task send waits in it\. Task\(0\) next: /);
    expect(json["waitsFor"]).toMatchObject([{ reason: "queue_paused", queue: "mail", work: { name: "send" } }]);
    expect(next).toBe("reprise queue resume mail");
    await here.run(next);
    await here.completes("letter-1");
  });

  test("a poisoned run", { timeout: 120_000 }, async () => {
    await using here = new Incident();
    await here.start("poison-1", "poison");
    for (let n = 0; n < 3; n += 1) await here.workerThatDies();
    const suspect = await here.show("poison-1");
    expect(suspect.json["attempts"].filter(({ outcome }: { outcome: string }) => outcome === "lost")).toHaveLength(2);
    // The next worker takes the run over before it claims it again.
    for (let n = 0; n < 5; n += 1) await here.workerThatDies();
    await here.worker();
    await expect.poll(async () => (await here.show("poison-1")).json["status"], POLL).toBe("blocked");
    const { words, json, next } = await here.show("poison-1");
    expect(words).toContain("8 workers in a row lost their lease without a commit");
    expect(json["waitsFor"]).toMatchObject([{ reason: "stopped", next: ["reprise resume poison-1"] }]);
    expect(next).toContain("`reprise resume poison-1`");
    here.file("fixed");
    await here.run("reprise resume poison-1");
    await here.completes("poison-1");
  });

  test("a lost worker", async () => {
    await using here = new Incident();
    await here.start("long-1", "long");
    const worker = await here.worker({ words: "converting", lease: "5s" });
    const alive = await here.show("long-1");
    expect(alive.words).toMatch(
      /Worker \S+ \(\w+\) has executed the run for \S+ m?s, last commit .* ago; its lease is valid/,
    );
    worker.kill("SIGKILL");
    await expect.poll(async () => (await here.show("long-1")).json["waitsFor"][0].reason, POLL).toBe("lease_expired");
    const { words, next } = await here.show("long-1");
    expect(words).toMatch(
      /The lease of worker \S+ \(\w+\), which held the run, expired .* ago; no live worker can take it over\./,
    );
    here.file("go");
    await here.runWorker(next);
    await here.completes("long-1");
    expect((await here.show("long-1")).words).toMatch(/worker \S+ was lost; another worker takes over the run/);
  });

  test("a full limit", async () => {
    await using here = new Incident();
    await here.start("letter-1", "letter", { input: "slow" });
    await here.worker({ words: "sending to slow" });
    await here.start("letter-2", "letter", { input: "bob" });
    await expect.poll(async () => (await here.show("letter-2")).json["status"], POLL).toBe("waiting");
    const { words, json } = await here.show("letter-2");
    expect(words).toContain("Queue mail runs at most 1 task at once, and 1 holds its slot: Task(0) of letter-1;");
    const [{ reason, holders, next }] = json["waitsFor"];
    expect([reason, holders]).toEqual(["concurrency_limit", [{ run: "letter-1", command: "Task(0)" }]]);
    expect(next).toEqual(["reprise show letter-1", "reprise queue limit mail --concurrency 2"]);
    expect((await here.run(next[0])).stdout).toMatch(/has executed task send for/);
    await here.run(next[1]);
    await here.completes("letter-2");
    here.file("go");
    await here.completes("letter-1");
  });

  test("the wrong version deployed", async () => {
    const [v1, v2] = [1, 2].map((version) => join(ROOT, `test/operator/order-v${version}.ts`)) as [string, string];
    await using here = new Incident();
    await here.start("order-7", "order", { file: v2 });
    await here.worker({ file: v1 });
    const { words, json, next } = await here.show("order-7");
    expect(words).toMatch(
      /No live worker can claim the run, which needs order version 2: \S+ \(\w+\) has order version 1\. next: /,
    );
    expect(json["waitsFor"]).toMatchObject([{ reason: "no_worker", workers: [{ lacks: "has order version 1" }] }]);
    await here.runWorker(next, v2);
    await here.completes("order-7");
  });

  test("a stuck child", async () => {
    await using here = new Incident();
    await here.worker();
    await here.start("shop-1", "shop");
    await expect
      .poll(async () => (await here.show("shop-1")).json["waitsFor"][0]?.waitsFor?.[0]?.reason, POLL)
      .toBe("promise");
    const { words, next } = await here.show("shop-1");
    expect(words).toMatch(
      /has waited .* for child approval, run approval-1, waiting: it has waited .* for promise approve, showing 'order 7 for 90 EUR'\./,
    );
    expect(next).toBe("reprise resolve approval-1 approve '<value as JSON>'");
    await here.run(next, { "<value as JSON>": "true" });
    await here.completes("shop-1");
  });

  test("an expired deadline", async () => {
    await using here = new Incident();
    await here.start("approval-7", "approval", { more: ["--deadline", "200ms"] });
    await expect.poll(async () => (await here.show("approval-7")).words, POLL).toMatch(/Its deadline passed .* ago/);
    const { words, next } = await here.show("approval-7");
    expect(words).toContain("No worker is live; the run needs one with approval version 1.");
    await here.runWorker(next);
    expect((await here.on("show", "approval-7", "--watch")).code).toBe(1);
    const failed = await here.show("approval-7");
    expect(failed.words).toContain("failed DEADLINE_EXCEEDED:");
    expect(failed.next).toContain("`reprise retry approval-7` gives it a new deadline");
    await here.run("reprise retry approval-7");
    expect((await here.show("approval-7")).words).toContain("· retried");
  });

  test("a flaky step", async () => {
    await using here = new Incident();
    await here.start("later-1", "paysLater");
    await here.start("pays-1", "pays");
    await here.worker();
    await expect.poll(async () => (await here.show("later-1")).json["waitsFor"][0]?.reason, POLL).toBe("retry");
    const { words } = await here.show("later-1");
    expect(words).toMatch(
      /Attempt 2 of task chargeLater starts in .*; attempt 1 failed: Error: the card network does not answer\./,
    );
    expect((await here.on("show", "pays-1", "--watch")).code).toBe(1);
    const failed = await here.show("pays-1");
    expect(failed.words).toContain("the card network does not answer");
    const attempts = failed.json["attempts"] as readonly Record<string, unknown>[];
    expect(attempts.map(({ step, attempt, outcome }) => [step, attempt, outcome])).toEqual([
      ["Task(0)", 1, "failed"],
      ["Task(0)", 2, "failed"],
    ]);
    expect(failed.words).toMatch(/definitions\.ts:\d+/);
    expect(failed.next).toContain("reprise retry pays-1");
    here.file("fixed");
    await here.run("reprise retry pays-1");
    await here.completes("pays-1");
  });

  test("a crash between a call and its commit", async () => {
    await using here = new Incident();
    await here.start("notifies-1", "notifies");
    await here.workerThatDies();
    await here.worker();
    await here.completes("notifies-1");
    const [first, second] = readFileSync(join(here.path, "calls"), "utf8").trimEnd().split("\n");
    // The call was made twice, with the same key: the receiver can tell.
    expect(first).toBe(second);
    const { words, json } = await here.show("notifies-1");
    expect(words).toMatch(/worker \S+ was lost; another worker takes over the run/);
    expect(words).toMatch(/execution 2/);
    expect(json["attempts"]).toMatchObject([
      { outcome: "lost" },
      { step: "Operation(0)", execution: 2, attempt: 1, outcome: "completed" },
    ]);
  });
});

const isRoot = process.getuid?.() === 0 && isInstalled("mount");

// Only root may mount a disk that can be filled.
test.skipIf(!hasTerminal || !isRoot)(
  "show names the cause and the remedy: a full disk",
  { timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "reprise-operator-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", folder]);
    try {
      await using here = new Incident(folder);
      await here.start("steps-1", "steps");
      await here.worker();
      const ballast = join(folder, "ballast");
      const fill = (): void => {
        const file = openSync(ballast, "a");
        for (let size = 1 << 20; size >= 1;) {
          try {
            writeSync(file, Buffer.alloc(size));
          } catch {
            size >>= 1;
          }
        }
        closeSync(file);
      };
      let next = "";
      // A checkpoint of the log may free some space once more.
      const seen = async (): Promise<unknown> => {
        fill();
        const shown = await here.show("steps-1");
        next = shown.next;
        const says = /The disk of the store is full: .* free in \S+, so no worker can commit\./.test(shown.words);
        return [says, shown.json["waitsFor"][0]?.reason, shown.json["waitsFor"][0]?.folder];
      };
      await expect.poll(seen, POLL).toEqual([true, "disk_full", folder]);
      expect((await here.run(next)).stdout).toContain("100%");
      rmSync(ballast);
      here.file("go");
      await here.completes("steps-1");
    } finally {
      execFileSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
