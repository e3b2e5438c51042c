// reprise debug, with a debugger that speaks the inspector's protocol over its WebSocket.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { join } from "node:path";
import { DEFINITIONS, finished, ROOT, startCli, waitForOutput, type Finished } from "./cli-process.ts";
import * as definitions from "./definitions.ts";
import * as flows from "./flows.ts";
import { greeting } from "./greeting-graph.ts";
import { InspectorClient } from "./inspector-client.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

let shop: StoreWithRuns;

beforeAll(async () => {
  shop = new StoreWithRuns([definitions.pay, definitions.charge, flows.wide, greeting]);
  await shop.start(
    { id: "pay-1", what: definitions.pay, input: 5, until: "completed" },
    { id: "talk-1", what: greeting, input: {}, until: "completed" },
    { id: "wide-1", what: flows.wide, input: 3, until: "completed" },
  );
});
afterAll(() => shop[Symbol.dispose]());

/** Starts `reprise debug` and attaches to it; `finished` is its end. */
async function attach(
  ...args: readonly string[]
): Promise<{ readonly client: InspectorClient; readonly end: Promise<Finished> }> {
  const child = startCli(["debug", ...args, "--port", "0", "--store", shop.url]);
  const end = finished(child);
  let printed = "";
  child.stderr.on("data", (chunk) => (printed += String(chunk)));
  await waitForOutput(child, "Waiting for a debugger");
  return { client: await InspectorClient.attach(/^debugger (ws:\S+)$/m.exec(printed)![1]!), end };
}

/** The number of the first line that contains the text, as the protocol counts. */
function lineOf(file: string, text: string): number {
  return readFileSync(file, "utf8")
    .split("\n")
    .findIndex((line) => line.includes(text));
}

test("the debugger stops before the entry of --at is delivered, then in the user's code, and the verdict follows", async () => {
  const { client, end } = await attach("pay-1", DEFINITIONS, "--at", "Task(0)");
  using debug = client;
  const after = lineOf(DEFINITIONS, "await ctx.sleep(20)");
  await debug.send("Debugger.setBreakpointByUrl", { urlRegex: ".*test/cli/definitions.ts$", lineNumber: after });
  await debug.send("Runtime.runIfWaitingForDebugger");
  const stopped = await debug.paused();
  expect(stopped[0]).toMatchObject({ functionName: "beforeDelivery" });
  expect(await debug.evaluate(stopped[0]!, "entry")).toMatchObject({
    type: "TaskCompleted",
    command: "Task(0)",
    data: { result: { paid: 5 } },
  });
  await debug.send("Debugger.resume");
  const [frame] = await debug.paused();
  expect([debug.urlOf(frame!), frame!.location.lineNumber]).toEqual([pathToFileURL(DEFINITIONS).href, after]);
  expect(await debug.evaluate(frame!, "paid")).toBe(5);
  await debug.send("Debugger.resume");
  const { code, stdout, stderr } = await end;
  expect([code, stdout]).toEqual([0, expect.stringContaining("verified  pay-1: journal intact, code matches")]);
  expect(stderr).toMatch(/stopped before entry \d+, TaskCompleted Task\(0\)/);
});

test("without --at the debugger stops before the first line of the run's code", async () => {
  const { client, end } = await attach("pay-1", DEFINITIONS);
  using debug = client;
  const first = lineOf(DEFINITIONS, "await ctx.task(charge, cents)");
  await debug.send("Debugger.setBreakpointByUrl", { urlRegex: ".*test/cli/definitions.ts$", lineNumber: first });
  await debug.send("Runtime.runIfWaitingForDebugger");
  const [stopped] = await debug.paused();
  expect(stopped).toMatchObject({ functionName: "beforeStart" });
  expect(await debug.evaluate(stopped!, "run.id")).toBe("pay-1");
  await debug.send("Debugger.resume");
  const [frame] = await debug.paused();
  expect(await debug.evaluate(frame!, "cents")).toBe(5);
  await debug.send("Debugger.resume");
  expect((await end).code).toBe(0);
});

test("code that differs is reported after the debugger has stopped, with exit code 4", async () => {
  const { client, end } = await attach("pay-1", join(ROOT, "test/cli/changed/definitions.ts"));
  using debug = client;
  await debug.send("Runtime.runIfWaitingForDebugger");
  await debug.paused();
  await debug.send("Debugger.resume");
  const { code, stdout } = await end;
  expect([code, stdout]).toEqual([4, expect.stringContaining("differs  pay-1: the journal recorded task 'charge'")]);
});

test("a graph stops at the call of a node, and a flow at a node", async () => {
  for (const [id, file, at] of [
    ["talk-1", join(ROOT, "test/cli/greeting-graph.ts"), "Node(1.0)"],
    ["wide-1", join(ROOT, "test/cli/flows.ts"), "items"],
  ] as const) {
    const { client, end } = await attach(id, file, "--at", at);
    using debug = client;
    await debug.send("Runtime.runIfWaitingForDebugger");
    const [stopped] = await debug.paused();
    expect(stopped).toMatchObject({ functionName: "beforeDelivery" });
    expect(await debug.evaluate(stopped!, "entry.command")).toBe(at);
    await debug.send("Debugger.resume");
    expect([id, (await end).code]).toEqual([id, 0]);
  }
});

test("a bundle and a run of a mirror are debugged like a run of the store", async () => {
  const [home, bundle] = [shop.folder.file("home"), shop.folder.file("pay-1.jsonl")];
  expect((await shop.cli("bundle", "pay-1", "-o", bundle, "--home", home)).code).toBe(0);
  expect((await shop.cli("pull", shop.url, "pay-1", "--as", "prod", "--home", home)).code).toBe(0);
  for (const target of [bundle, "prod/pay-1"]) {
    const { client, end } = await attach(target, DEFINITIONS, "--at", "Task(0)", "--home", home);
    using debug = client;
    await debug.send("Runtime.runIfWaitingForDebugger");
    const [stopped] = await debug.paused();
    expect(await debug.evaluate(stopped!, "entry.data.result.paid")).toBe(5);
    await debug.send("Debugger.resume");
    const { code, stdout } = await end;
    expect([target, code, stdout]).toEqual([target, 0, expect.stringContaining("verified  pay-1:")]);
  }
  const verified = await shop.cli("verify", "prod/pay-1", DEFINITIONS, "--home", home);
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining("code matches the journal")]);
});

test("a place that the journal does not have is refused before a debugger is needed, and the places it has are named", async () => {
  const { code, stderr } = await shop.cli("debug", "pay-1", DEFINITIONS, "--at", "Task(9)");
  expect(code).toBe(2);
  expect(stderr).toContain(
    "the journal of run pay-1 has no entry of Task(9). It has 8 entries, among them of Task(0).",
  );
});

test("a bundle without payloads and a file that is not there are refused before a debugger is needed", async () => {
  const [home, bundle] = [shop.folder.file("home"), shop.folder.file("hashes.jsonl")];
  expect((await shop.cli("bundle", "pay-1", "--hash-only", "-o", bundle, "--home", home)).code).toBe(0);
  const { code, stdout } = await shop.cli("debug", bundle, DEFINITIONS, "--home", home);
  expect([code, stdout]).toEqual([
    7,
    expect.stringContaining("has no payloads to replay. Get one that was made with --full."),
  ]);
  const missing = await shop.cli("debug", "nothing.jsonl", DEFINITIONS, "--home", home);
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringMatching(/There is no file .*nothing\.jsonl/)]);
});

test("Ctrl-C ends the command while it waits for a debugger", async () => {
  const child = startCli(["debug", "pay-1", DEFINITIONS, "--port", "0", "--store", shop.url]);
  await waitForOutput(child, "Waiting for a debugger");
  const ended = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
  child.kill("SIGINT");
  expect(await ended).toBe("SIGINT");
});
