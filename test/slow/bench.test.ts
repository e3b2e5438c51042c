// The benchmark works and says what it promises; how fast anything is, no test says.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../../bench/main.ts", import.meta.url));
const RATED = ["perSecond", "p50Ms", "p99Ms", "rawPerSecond", "ratio"];
const ALWAYS = ["bytesPerStep", "rssMb", "fsyncMs", "cpuUsPerStep", "runs", "steps", "elapsedMs"];

async function bench(...args: readonly string[]): Promise<Record<string, unknown>[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=reprise-source",
    MAIN,
    ...args,
    ...["--store", "sqlite", "--scale", "0.01", "--json"],
  ]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const WORKLOADS: readonly (readonly [args: string, lines: number, extra: readonly string[]])[] = [
  ["steps", 1, []],
  ["steps --wait 3ms", 1, []],
  ["tasks --workers 2", 1, []],
  ["latency", 1, ["rawSequentialPerSecond"]],
  ["fanout", 3, ["usPerTask"]],
  ["flow --variant chain", 1, []],
  ["flow --variant 10000", 1, ["usPerCompletion"]],
  ["history --variant 10000", 1, ["resumeMs", "rawSequentialPerSecond"]],
  ["payload", 3, ["mbPerSecond"]],
  ["runs --repeat 2", 1, []],
  ["graph --variant chain", 1, ["rawSequentialPerSecond"]],
  ["graph --variant 1000", 1, ["usPerNode"]],
  ["graph --variant 10000", 1, ["usPerNode"]],
  ["graph --variant state", 1, ["resumeMs", "firstStepsCpuUs", "lastStepsCpuUs"]],
];

test.each(WORKLOADS)("%s prints its lines with every number", { timeout: 180_000 }, async (args, count, extra) => {
  const lines = await bench(...args.split(" "));
  expect(lines).toHaveLength(count);
  for (const line of lines) {
    expect(line).toMatchObject({ workload: args.split(" ")[0], store: "sqlite" });
    for (const name of [...RATED, ...ALWAYS, ...extra]) expect(line[name], name).toBeTypeOf("number");
  }
});

test("idle has no rate, and says what waiting costs", async () => {
  const [line] = await bench("idle");
  for (const name of RATED) expect(line, name).toHaveProperty(name, null);
  for (const name of [...ALWAYS, "cpuPercent"]) expect(line?.[name], name).toBeTypeOf("number");
});

test("a workload that does not exist is refused with the list of those that do", async () => {
  await expect(bench("stepps")).rejects.toThrow(/steps, latency, tasks/);
});
