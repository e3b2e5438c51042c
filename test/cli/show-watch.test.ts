// show --watch: follows a run until it ends or stops.

import { expect, test } from "vitest";
import { createEngine } from "reprise";
import { finished, isInstalled, jsonLines, waitForOutput, startCli, startOnTerminal } from "./cli-process.ts";
import { charge, incomplete, pay, refuse, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const ALL = [pay, charge, refuse, review, incomplete];
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

async function approve(store: StoreWithRuns): Promise<void> {
  await using engine = await createEngine({ store: store.url, definitions: [review], logger: SILENT });
  await engine.get(review, "review-1").resolve("approval", { ok: true });
  await engine.get(review, "review-1").result();
}

test("without a terminal, lines are appended as they happen, and the command ends with the run", async () => {
  using store = await new StoreWithRuns(ALL).start({ id: "review-1", what: review, until: "waiting" });
  const child = startCli(["show", "review-1", "--watch", "--store", store.url]);
  const ended = finished(child);
  await waitForOutput(child, "○ approval");
  await approve(store);
  const { code, stdout, stderr } = await ended;
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^review-1 {2}review v1 {2}waiting for /);
  expect(stdout).toMatch(/○ approval +promise, waiting up to 1 d\n.*● approval +resolved after .* → \{ ok: true \}\n/);
  expect(stdout).toMatch(/● completed +→ true\n\nreview-1 {2}review v1 {2}completed in .*\n$/);
  expect(stdout).not.toContain("\u001b");
});

test("with --json every entry is a line, and the last line is the run", async () => {
  using store = await new StoreWithRuns(ALL).start({ id: "pay-1", what: pay, input: 1, until: "completed" });
  const { code, stdout } = await store.cli("show", "pay-1", "--watch", "--json");
  expect(code).toBe(0);
  const lines = jsonLines(stdout);
  expect(lines.slice(0, -1).map(({ entry }) => entry.seq as number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(lines.at(-1)).toMatchObject({ run: { id: "pay-1", status: "completed", waitsFor: [] } });
});

test("a failed run exits with 1 and a stopped run with 4, each with its reason", async () => {
  using store = await new StoreWithRuns(ALL).start(
    { id: "refuse-1", what: refuse, until: "failed" },
    { id: "incomplete-1", what: incomplete, until: "blocked" },
  );
  const failed = await store.cli("show", "refuse-1", "--watch");
  expect(failed.code).toBe(1);
  expect(failed.stdout).toContain("failed FATAL: FatalError: not today");
  const blocked = await store.cli("show", "incomplete-1", "--watch");
  expect(blocked.code).toBe(4);
  expect(blocked.stdout).toContain("blocked UNKNOWN_TASK:");
});

test("Ctrl-C ends the command, not the run", async () => {
  using store = await new StoreWithRuns(ALL).start({ id: "review-1", what: review, until: "waiting" });
  const child = startCli(["show", "review-1", "--watch", "--store", store.url]);
  const ended = finished(child);
  await waitForOutput(child, "○ approval");
  child.kill("SIGINT");
  expect((await ended).code).toBe(130);
  expect(await store.statusOf("review-1")).toBe("waiting");
});

// Needs `script` of util-linux for a pseudo-terminal.
test.skipIf(!isInstalled("script"))("on a terminal the last lines show the status and are redrawn", async () => {
  using store = await new StoreWithRuns(ALL).start({ id: "review-1", what: review, until: "waiting" });
  const child = startOnTerminal(["show", "review-1", "--watch", "--store", store.url]);
  const ended = finished(child);
  await waitForOutput(child, "promise approval, times out in");
  await approve(store);
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout).toContain("A\u001b[J");
  expect(stdout).toContain("\u001b[32mcompleted");
  // The lines that remain after all erasures.
  const lines = screenOf(stdout);
  expect(lines.some((line) => line.includes("times out"))).toBe(false);
  expect(lines.filter((line) => line.includes("● completed"))).toHaveLength(1);
  expect(lines.every((line) => line.length <= 100)).toBe(true);
});

/** The final lines of a terminal. Handles cursor up and erase below, the only movements in the output. */
function screenOf(output: string): string[] {
  const lines: string[] = [""];
  // eslint-disable-next-line no-control-regex
  for (const part of output.split(/(\u001b\[\d+A|\u001b\[J|\r?\n)/)) {
    // eslint-disable-next-line no-control-regex
    const up = /^\u001b\[(\d+)A$/.exec(part);
    if (up !== null) lines.splice(Math.max(0, lines.length - 1 - Number(up[1])), Number.POSITIVE_INFINITY, "");
    else if (part.endsWith("\n")) lines.push("");
    // eslint-disable-next-line no-control-regex
    else if (part !== "\u001b[J") lines[lines.length - 1] += part.replace(/\u001b\[[\d;]*m|\r/g, "");
  }
  return lines;
}

test(
  "a bulk command asks on a terminal, and changes nothing without a yes",
  { skip: !isInstalled("script") },
  async () => {
    using store = await new StoreWithRuns(ALL).start({ id: "review-1", what: review, until: "waiting" });
    const answer = async (text: string) => {
      const child = startOnTerminal(["cancel", "--definition", "review", "--store", store.url]);
      const ended = finished(child);
      await waitForOutput(child, "Cancel 1 run? [y/N]");
      child.stdin.write(text);
      return ended;
    };
    const no = await answer("n\n");
    expect(no.code).toBe(1);
    expect(no.stdout).toContain("Nothing was changed.");
    const interrupted = await answer("\u0003");
    expect(interrupted.code).toBe(130);
    expect(await store.statusOf("review-1")).toBe("waiting");
    const yes = await answer("y\n");
    expect(yes.code).toBe(0);
    expect(yes.stdout).toContain("requested cancellation of");
    expect(await store.finish("review-1")).toMatchObject({ status: "cancelled" });
  },
);
