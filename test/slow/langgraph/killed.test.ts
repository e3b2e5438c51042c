// A LangGraph graph whose process is killed, again and again, goes on from its last step.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RepriseSaver } from "reprise/langgraph";
import { afterEach, beforeEach, expect, test } from "vitest";

interface Report {
  readonly began?: string;
  readonly log?: readonly string[];
  readonly isInterrupted?: boolean;
}

let folder: string;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reprise-langgraph-"));
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** Starts a process, waits until it says what is waited for, kills it, and gives the nodes that began in it. */
async function untilKilled(
  input: object | null,
  isEnough: (report: Report) => boolean,
  hang = "",
): Promise<{ readonly began: readonly string[]; readonly last: Report }> {
  const began: string[] = [];
  const child = fork(
    new URL("./graph-process.ts", import.meta.url),
    [join(folder, "graph.db"), "ann", JSON.stringify(input)],
    {
      execArgv: ["--conditions=reprise-source"],
      env: { ...process.env, HANG: hang },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    },
  );
  children.add(child);
  const gone = once(child, "exit");
  const last = await new Promise<Report>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`ended with ${code} before it was killed`)));
    child.on("message", (report: Report) => {
      if (report.began !== undefined) began.push(report.began);
      if (isEnough(report)) resolve(report);
    });
  });
  child.kill("SIGKILL");
  await gone;
  children.delete(child);
  return { began, last };
}

test(
  "a graph killed in a step, at its interrupt and in the step after goes on with the step it was in",
  { timeout: 300_000 },
  async () => {
    const inDraft = await untilKilled({ log: ["begun"] }, ({ began }) => began === "draft", "draft");
    expect(inDraft.began).toEqual(["draft"]);
    const atInterrupt = await untilKilled(null, ({ log }) => log !== undefined);
    expect(atInterrupt.began).toEqual(["draft", "review"]);
    expect(atInterrupt.last).toEqual({ log: ["begun", "draft"], isInterrupted: true });
    const inPublish = await untilKilled({ resume: "yes" }, ({ began }) => began === "publish", "publish");
    expect(inPublish.began).toEqual(["review", "publish"]);
    const atEnd = await untilKilled(null, ({ log }) => log !== undefined);
    expect(atEnd.began).toEqual(["publish"]);
    expect(atEnd.last).toEqual({ log: ["begun", "draft", "review: yes", "publish"], isInterrupted: false });

    await using saver = new RepriseSaver({ store: `sqlite:${join(folder, "graph.db")}` });
    const steps = await Array.fromAsync(
      saver.list({ configurable: { thread_id: "ann" } }),
      ({ metadata }) => metadata?.step,
    );
    expect(steps).toEqual([3, 2, 1, 0, -1]);
  },
);
