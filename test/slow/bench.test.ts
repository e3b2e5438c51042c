// The benchmark works and says what it promises; how fast anything is, no test says.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { describeOn } from "../servers/index.ts";

const MAIN = fileURLToPath(new URL("../../bench/main.ts", import.meta.url));
const RATED = ["perSecond", "p50Ms", "p99Ms", "rawPerSecond", "ratio"];
const ALWAYS = ["bytesPerStep", "rssMb", "fsyncMs", "cpuUsPerStep", "runs", "steps", "elapsedMs"];

async function benchOn(store: string, ...args: readonly string[]): Promise<Record<string, unknown>[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=reprise-source",
    MAIN,
    ...args,
    ...["--store", store, "--scale", "0.01", "--json"],
  ]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const bench = (...args: readonly string[]): ReturnType<typeof benchOn> => benchOn("sqlite", ...args);

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
  ["memo", 1, ["executedCpuUs", "reusedCpuUs", "hitCpuUs"]],
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

test(
  "agent says what a model call and a token cost, next to the same loop without Reprise",
  { timeout: 180_000 },
  async () => {
    const lines = await bench("agent");
    expect(lines.map(({ variant }) => variant)).toEqual(["calls", "calls at once", "tokens", "tokens at once"]);
    for (const line of lines)
      for (const name of ["plainUs", "durableUs", "overheadUs", "plainCpuUs", "durableCpuUs", "overheadCpuUs"])
        expect(line[name], name).toBeTypeOf("number");
  },
);

test("idle has no rate, and says what waiting costs", { timeout: 180_000 }, async () => {
  const [line] = await bench("idle");
  for (const name of RATED) expect(line, name).toHaveProperty(name, null);
  for (const name of [...ALWAYS, "cpuPercent"]) expect(line?.[name], name).toBeTypeOf("number");
});

test(
  "backlog has no rate, and says how long a claim takes and how fast it was filled",
  { timeout: 180_000 },
  async () => {
    const [line, ...others] = await bench("backlog", "--variant", "1000");
    expect(others).toEqual([]);
    expect(line).toMatchObject({ workload: "backlog", store: "sqlite", perSecond: null, ratio: null, runs: 10 });
    for (const name of ["fillPerSecond", "p50Ms"]) expect(line?.[name], name).toBeGreaterThan(0);
    expect(line?.["p99Ms"]).toBeGreaterThanOrEqual(line?.["p50Ms"] as number);
  },
);

const POINTS: readonly (readonly [curve: string, points: number, extra: readonly string[]])[] = [
  ["tasks", 4, ["p50Ms"]],
  ["limited", 4, ["p50Ms", "waiting"]],
  ["queued", 1, ["rssMb", "endRssMb"]],
  ["apart", 1, ["p50Ms", "p99Ms", "hereP50Ms"]],
  ["graph", 1, ["stepCpuUs", "ofStep"]],
  ["block", 2, ["blockMs", "blockCpuMs"]],
];

test.each(POINTS)(
  "growth --only %s prints every point of the curve",
  { timeout: 180_000 },
  async (curve, points, extra) => {
    const lines = await bench("growth", "--only", curve);
    expect(lines).toHaveLength(points);
    for (const line of lines) {
      expect(line["variant"]).toMatch(new RegExp(`^${curve} `));
      for (const name of ["perSecond", "cpuUsPerStep", ...extra]) expect(line[name], name).toBeGreaterThan(0);
    }
  },
);

test("a curve that growth does not have is refused with the list of its points", async () => {
  await expect(bench("growth", "--only", "taskss")).rejects.toThrow(/tasks 200, tasks 1000/);
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on a server of its own, ${kind}`, () => {
    test("steps prints a line with every number, and is compared with the same server", async () => {
      const [line, ...others] = await benchOn(kind, "steps");
      expect(others).toEqual([]);
      expect(line).toMatchObject({ workload: "steps", store: kind, workers: 1 });
      for (const name of [...RATED, ...ALWAYS]) expect(line?.[name], name).toBeTypeOf("number");
      for (const name of ["perSecond", "p50Ms", "rawPerSecond", "ratio", "cpuUsPerStep", "steps"])
        expect(line?.[name], name).toBeGreaterThan(0);
      expect(line?.["p99Ms"]).toBeGreaterThanOrEqual(line?.["p50Ms"] as number);
    }, 180_000);
  });

test("every peer has an exact version; its lock file has all packages, of every platform, and names no registry", () => {
  const read = (name: string): string => readFileSync(new URL(`../../bench/peers/${name}`, import.meta.url), "utf8");
  const { optionalDependencies } = JSON.parse(read("package.json")) as { optionalDependencies: Record<string, string> };
  expect(Object.values(optionalDependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  const { packages } = JSON.parse(read("package-lock.json")) as {
    packages: Record<string, LockedPackage>;
  };
  for (const [name, version] of Object.entries(optionalDependencies))
    expect(packages[`node_modules/${name}`]?.version, name).toBe(version);
  expect(Object.values(packages).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
  // npm ci refuses a lock file without one of them.
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies: optional }]) =>
    Object.keys({ ...dependencies, ...optional }).filter((name) => !isLocked(packages, path, name)),
  );
  expect(missing).toEqual([]);
});

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Where Node would find a package from that folder: in its own node_modules, or in those above. */
function isLocked(packages: Readonly<Record<string, LockedPackage>>, folder: string, name: string): boolean {
  if (packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
  if (folder === "") return false;
  const above = folder.lastIndexOf("node_modules/");
  return isLocked(packages, folder.slice(0, Math.max(0, above - 1)), name);
}

test("a workload of peers that does not exist is refused with the list of those that do", async () => {
  await expect(bench("peers", "--only", "stepps")).rejects.toThrow(/steps, latency, runs, queue, graph/);
});

test("a workload that does not exist is refused with the list of those that do", async () => {
  await expect(bench("stepps")).rejects.toThrow(/steps, latency, tasks/);
});
