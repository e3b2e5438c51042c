// reprise debug --live, with a debugger that speaks the inspector's protocol over its WebSocket.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEngine } from "reprise";
import { cli, finished, ROOT, startCli, waitForOutput, type Finished } from "./cli-process.ts";
import * as definitions from "./live-definitions.ts";
import { InspectorClient } from "./inspector-client.ts";
import { StoreWithRuns } from "./store-with-runs.ts";
import { wide } from "./flows.ts";

const CODE = join(ROOT, "test/cli/live-definitions.ts");

let shop: StoreWithRuns;
let home: string;

beforeAll(async () => {
  const { sale, price, fragile, tour } = definitions;
  shop = new StoreWithRuns([sale, price, fragile, tour, wide]);
  home = shop.folder.file("home");
  await shop.start(
    { id: "sale-1", what: sale, input: "pen", until: "waiting" },
    { id: "sale-2", what: sale, input: "pen", until: "waiting" },
    { id: "fragile-1", what: fragile, until: "failed" },
    { id: "tour-1", what: tour, input: {}, until: "completed" },
    { id: "wide-1", what: wide, input: 3, until: "completed" },
  );
  await using engine = await createEngine({ store: shop.url, definitions: [sale, price], logger: false });
  const run = engine.get(sale, "sale-1");
  await run.resolve("approval", "yes");
  await run.result();
  // Both of its tasks are answered.
  while ((await engine.get(sale, "sale-2").info()).entries < 6) await new Promise((resolve) => setImmediate(resolve));
});
afterAll(() => shop[Symbol.dispose]());

/** Starts `reprise debug --live`, attaches to it and lets it continue. */
async function attach(
  ...args: readonly string[]
): Promise<{ readonly client: InspectorClient; readonly end: Promise<Finished> }> {
  const child = startCli(["debug", ...args, "--live", "--port", "0", "--store", shop.url, "--home", home], {
    env: { CALLED_AT: "desk" },
  });
  const end = finished(child);
  let printed = "";
  child.stderr.on("data", (chunk) => (printed += String(chunk)));
  await waitForOutput(child, "Waiting for a debugger");
  expect(printed).toMatch(/^live after entry \d+.* makes real calls\.$/m);
  const client = await InspectorClient.attach(/^debugger (ws:\S+)$/m.exec(printed)![1]!);
  await client.send("Runtime.runIfWaitingForDebugger");
  return { client, end };
}

/** Goes through a live run without a breakpoint, and returns its end as JSON. */
async function goOn(...args: readonly string[]): Promise<{ readonly code: number | null; readonly report: any }> {
  const { client, end } = await attach(...args, "--json");
  using debug = client;
  const [stopped] = await debug.paused();
  expect(stopped).toMatchObject({ functionName: "beforeLive" });
  await debug.send("Debugger.resume");
  const { code, stdout, stderr } = await end;
  expect(stdout, stderr).not.toBe("");
  return { code, report: JSON.parse(stdout) };
}

test("a workflow stops where its journal ends, then its calls are real, with their keys, and the store does not change", async () => {
  const recorded = await shop.cli("journal", "sale-1", "--json");
  const { client, end } = await attach("sale-1", CODE, "--at", "Task(1)");
  using debug = client;
  const lines = readFileSync(CODE, "utf8").split("\n");
  const lineNumber = lines.findIndex((line) => line.includes('await ctx.promise("approval")'));
  expect((await debug.paused())[0]).toMatchObject({ functionName: "beforeLive" });
  await debug.send("Debugger.setBreakpointByUrl", { urlRegex: ".*live-definitions.ts$", lineNumber });
  await debug.send("Debugger.resume");
  const [frame] = await debug.paused();
  expect(await debug.evaluate(frame!, "[reserved, second]")).toEqual([
    "production",
    expect.stringMatching(/^second pen at desk with /),
  ]);
  await debug.send("Debugger.resume");
  const { code, stdout } = await end;
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^completed {2}copy of sale-1: .* from the journal, then \d calls? live$/m),
  ]);
  expect(stdout).toContain("desk");
  expect(await shop.cli("journal", "sale-1", "--json")).toEqual(recorded);
});

test("the task is executed with the key that it had, and a message that the run received later arrives", async () => {
  const { code, report } = await goOn("sale-1", CODE, "--at", "Task(1)");
  expect(code).toBe(0);
  expect(report).toMatchObject({
    id: "sale-1",
    live: true,
    end: { status: "completed", output: { reserved: "production", approval: "yes", shipped: "desk" } },
  });
  await using engine = await createEngine({ store: shop.url, definitions: Object.values(definitions), logger: false });
  const { second } = await engine.get(definitions.sale, "sale-1").result();
  expect(report.end.output.second).toBe(second.replace("production", "desk"));
});

test("a graph continues from the step before the node", async () => {
  const { code, report } = await goOn("tour-1", CODE, "--at", "Node(2.0)");
  expect([code, report.calls, report.end]).toEqual([
    0,
    { live: 1 },
    { status: "completed", output: { north: "production", south: "desk" } },
  ]);
});

test("without --at a failed run of a mirror and of a bundle continues before its failure", async () => {
  const bundle = shop.folder.file("fragile-1.jsonl");
  expect((await shop.cli("bundle", "fragile-1", "-o", bundle, "--home", home)).code).toBe(0);
  expect((await shop.cli("pull", shop.url, "fragile-1", "--as", "prod", "--home", home)).code).toBe(0);
  for (const target of ["prod/fragile-1", bundle]) {
    const { code, report } = await goOn(target, CODE);
    expect([target, code, report.end]).toEqual([
      target,
      0,
      { status: "completed", output: { packed: "production", shipped: "desk" } },
    ]);
  }
  expect(await shop.statusOf("fragile-1")).toBe("failed");
});

test("without --at a live run continues at the end of its journal, until it waits for a message", async () => {
  const { code, report } = await goOn("sale-2", CODE);
  expect([code, report.calls, report.end]).toEqual([0, { live: 0 }, { status: "waiting" }]);
});

test("code that differs before the place is reported, and nothing waits or is executed", async () => {
  const changed = shop.folder.file("changed.ts");
  writeFileSync(
    changed,
    readFileSync(CODE, "utf8")
      .replace('ctx.run("reserve"', 'ctx.run("hold"')
      .replace('from "reprise"', `from ${JSON.stringify(join(ROOT, "src/index.ts"))}`),
  );
  const { code, stdout, stderr } = await shop.cli("debug", "sale-1", changed, "--at", "Task(1)", "--live");
  expect([code, stdout]).toEqual([4, expect.stringContaining("differs  sale-1")]);
  expect(stderr).not.toContain("Waiting for a debugger");
});

test("what has no place to continue from is refused before a debugger is needed", async () => {
  const flows = join(ROOT, "test/cli/flows.ts");
  for (const [args, message] of [
    [["sale-1", CODE], "Run sale-1 has ended. Say with --at from where it continues"],
    [["wide-1", flows, "--at", "items"], "Run wide-1 is a flow"],
    [["tour-1", CODE, "--at", "1"], "Run tour-1 has no committed step before 1"],
  ] as const) {
    const { code, stderr } = await cli(["debug", ...args, "--live", "--store", shop.url]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  }
});

test("a fork of a mirrored run is refused, and the refusal names the command that continues it here", async () => {
  expect((await shop.cli("pull", shop.url, "sale-1", "--as", "prod", "--home", home)).code).toBe(0);
  const { code, stderr } = await shop.cli("fork", "prod/sale-1", "--at", "Task:1", "--home", home);
  expect([code, stderr]).toEqual([3, expect.stringContaining("STORE_IS_MIRROR")]);
  expect(stderr).toContain("reprise debug prod/sale-1 <file> --at <command> --live");
});
