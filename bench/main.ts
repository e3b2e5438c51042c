// npm run bench -- peers [--json] [--repeat n] [--only workloads,peers] [--scale 0.01]
// npm run bench -- <workload|all> [--json] [--repeat n] [--store sqlite|postgres|mysql|<url>,…] [--only curve] [--workers n] [--apart] [--federated noted|sequenced] [--wait 3ms] [--variant v] [--scale 0.01]
//
// Every measurement has its own process, so that memory and compiled code of one do not affect the next.
// A single measurement runs in this process, so that `node --cpu-prof` can profile it.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { isFederated } from "./federated.ts";
import { measure, type BenchResult } from "./measure.ts";
import { isDatabase } from "./open-database.ts";
import type { PeerLine } from "./peers.ts";
import { tableOf } from "./print.ts";
import { chooseTelemetry } from "./traced.ts";
import type { Workload } from "./workload.ts";

/** Loaded on demand: the modules of all of them take 70 MB of memory. */
const WORKLOADS: Readonly<Record<string, () => Promise<Workload>>> = {
  steps: async () => (await import("./steps.ts")).stepsWorkload,
  latency: async () => (await import("./latency.ts")).latencyWorkload,
  tasks: async () => (await import("./tasks.ts")).tasksWorkload,
  fanout: async () => (await import("./fanout.ts")).fanoutWorkload,
  history: async () => (await import("./history.ts")).historyWorkload,
  payload: async () => (await import("./payload.ts")).payloadWorkload,
  memo: async () => (await import("./memo.ts")).memoWorkload,
  runs: async () => (await import("./runs.ts")).runsWorkload,
  graph: async () => (await import("./graph.ts")).graphWorkload,
  flow: async () => (await import("./flow.ts")).flowWorkload,
  idle: async () => (await import("./idle.ts")).idleWorkload,
  live: async () => (await import("./live.ts")).liveWorkload,
  backlog: async () => (await import("./backlog.ts")).backlogWorkload,
  writes: async () => (await import("./writes.ts")).writesWorkload,
  receipts: async () => (await import("./receipts.ts")).receiptsWorkload,
  fed: async () => (await import("./fed.ts")).fedWorkload,
  http: async () => (await import("./http.ts")).httpWorkload,
  agent: async () => (await import("./agent.ts")).agentWorkload,
  growth: async () => (await import("./growth.ts")).growthWorkload,
  capacity: async () => (await import("./capacity.ts")).capacityWorkload,
};
/** `all` does not include these: they take many minutes. */
const ON_REQUEST: readonly string[] = ["growth", "capacity"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: "string", default: "sqlite" },
    json: { type: "boolean", default: false },
    repeat: { type: "string", default: "1" },
    workers: { type: "string", default: "1" },
    apart: { type: "boolean", default: false },
    federated: { type: "string" },
    telemetry: { type: "string", default: "off" },
    wait: { type: "string" },
    variant: { type: "string" },
    only: { type: "string" },
    scale: { type: "string", default: "1" },
  },
});

const [name = "all"] = positionals;
const workers = wholeNumber("workers");
const repeat = wholeNumber("repeat");
const scale = Number(values.scale);
const { federated } = values;
if (!isFederated(federated)) fail(`--federated: expected noted or sequenced, got ${federated}.`);
if (!chooseTelemetry(values.telemetry)) fail(`--telemetry: expected off, api or sdk, got ${values.telemetry}.`);
if (!(scale > 0)) fail(`--scale: expected a number above 0, got ${values.scale}.`);
// The address of a server may contain commas as well.
const stores = values.store.split(/,(?=sqlite|postgres|mysql)/);
if (!stores.every(isDatabase))
  fail(`--store: expected sqlite, postgres, mysql or the address of an empty database, or several of these.`);
if (values.wait !== undefined && !/^\d+(?:ms)?$/.test(values.wait))
  fail(`--wait: expected e.g. 3ms, got ${values.wait}.`);
if (name === "peers") {
  const { comparePeers, peersTableOf } = await import("./peers.ts");
  const lines: PeerLine[] = [];
  for await (const line of comparePeers({ only: values.only, scale, rounds: repeat })) {
    if (values.json) console.log(JSON.stringify(line));
    lines.push(line);
  }
  if (!values.json) console.log(peersTableOf(lines));
  process.exit(0);
}
if (name !== "all" && !Object.hasOwn(WORKLOADS, name))
  fail(`Expected all, peers or one of ${Object.keys(WORKLOADS).join(", ")}; got ${name}.`);

const names = Object.keys(WORKLOADS).filter((each) => (name === "all" ? !ON_REQUEST.includes(each) : each === name));
const chosen = await Promise.all(names.map((each) => WORKLOADS[each]!()));
const planned = chosen.flatMap((workload) =>
  variantsOf(workload).flatMap((variant) => stores.map((store) => ({ workload, variant, store }))),
);
if (planned.length === 0)
  fail(
    `--only: expected the first word of a variant of ${name}: ${chosen[0]!.variants.join(", ")}; got ${values.only}.`,
  );
const lines: BenchResult[] = [];
for (const [index, { workload, variant, store }] of planned.entries()) {
  const alone = planned.length === 1 && repeat === 1;
  if (!alone) console.error(`${index + 1}/${planned.length} ${workload.name} ${variant} on ${store.split(":")[0]}`);
  const line = alone
    ? await measure(workload, { variant, scale }, store, workers, values.apart, federated)
    : await measureApart(workload, variant, store);
  if (values.json) console.log(JSON.stringify(line));
  lines.push(line);
}
if (!values.json) console.log(tableOf(lines));

function variantsOf(workload: Workload): readonly string[] {
  const given = values.variant ?? (workload.variants[0] === "0ms" ? values.wait : undefined);
  if (given !== undefined) return [given];
  const { only } = values;
  if (only !== undefined) return workload.variants.filter((variant) => variant.split(" ")[0] === only);
  // Functions that wait show the cost of a flush at the wrong moment.
  return name === "all" && workload.name === "steps" ? [...workload.variants, "3ms"] : workload.variants;
}

/** The median measurement, with the range of the others. */
async function measureApart(workload: Workload, variant: string, store: string): Promise<BenchResult> {
  const measured: BenchResult[] = [];
  for (let round = 0; round < repeat; round += 1) {
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...process.execArgv,
      fileURLToPath(import.meta.url),
      workload.name,
      ...[
        "--store",
        store,
        "--variant",
        variant,
        "--workers",
        String(workers),
        ...(values.apart ? ["--apart"] : []),
        ...(federated === undefined ? [] : ["--federated", federated]),
        "--scale",
        String(scale),
        "--json",
      ],
    ]);
    measured.push(JSON.parse(stdout) as BenchResult);
  }
  const rateOf = (line: BenchResult): number => line.perSecond ?? line.p50Ms ?? (line["cpuPercent"] as number);
  measured.sort((a, b) => rateOf(a) - rateOf(b));
  const median = measured[Math.floor(measured.length / 2)]!;
  return repeat === 1 ? median : { ...median, repeat, range: [rateOf(measured[0]!), rateOf(measured.at(-1)!)] };
}

function wholeNumber(option: "workers" | "repeat"): number {
  const value = Number(values[option]);
  if (!Number.isSafeInteger(value) || value < 1) fail(`--${option}: expected 1 or more, got ${values[option]}.`);
  return value;
}

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}
