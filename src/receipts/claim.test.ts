import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { decode, encode, valueKey } from "../base/index.ts";
import type { DefinitionKind, EntryType } from "../kernel/index.ts";
import { blindKey, type KeyOf } from "./blind.ts";
import { deriveClaim, readSteps } from "./claim.ts";
import { listJournal, type JournalSource } from "./journal-source.ts";
import { stepText, type StepRecord } from "./steps.ts";

type Line = readonly [type: EntryType, command: string, data?: object];

function journal(...lines: readonly Line[]): JournalSource {
  return listJournal(
    lines.map(([type, command, data = {}], at) => ({ seq: at + 1, type, command, data: encode(data), at, mark: 0 })),
  );
}

const program = (kind: DefinitionKind) => ({ kind, definition: "program", version: 1 });

/** Shows the value in place of its key. */
const shown: KeyOf = (_command, _field, text) => text;

async function stepsOf(kind: DefinitionKind, ...lines: readonly Line[]): Promise<StepRecord[]> {
  const steps: StepRecord[] = [];
  for await (const step of readSteps(program(kind), journal(["RunStarted", ""], ...lines), shown))
    steps.push(JSON.parse(JSON.stringify(step)) as StepRecord);
  return steps;
}

const KID: readonly Line[] = [
  ["RunStarted", "", { definition: "kid", flags: [1], input: 4, version: 1 }],
  ["OperationCompleted", "Operation(0)", { index: 0, input: { n: 4 }, operationName: "double", result: 8 }],
  ["RunCompleted", "", { output: 8 }],
];
const kid = { kind: "workflow", definition: "kid", version: 1 } as const;

test("step, step root, claim and claim key are those of the published vectors", async () => {
  const steps = await Array.fromAsync(readSteps(kid, journal(...KID)));
  expect(steps.map(stepText)).toEqual([
    '{"command":"Operation(0)","in":"7ca1690a61b7d03b4d2c52e5447b565a8c5700831dca35c7ca72caf041d84931","kind":"operation","name":"double","out":"c9dba344fdf3940416f6519ea085ca1258ad03935062250e590d18f97d4b4736"}',
  ]);
  const claim = await deriveClaim(kid, journal(...KID));
  expect(claim).toMatchObject({
    key: "42fb91fce68a961e178d1a91db8a72a958445f8a1c1cd56a9e39089ea900b401",
    root: "cef203bf797513ebc6196fc1fe7ae403baeca02a126706ad60dc6686ab1a2082",
    steps: 1,
    output: "8",
  });
  expect(valueKey("13")).toBe("6232d194695c5dcd98fe7f946e9acf3fecc79a2bb63ed660dc712088482e4b41");
});

test("a blind claim has an HMAC under the salt for each place, and equals no other claim", async () => {
  const salt = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");
  const hmac = (place: string, text: string): string =>
    createHmac("sha256", createHmac("sha256", salt).update(`reprise/blind/v1/${place}`).digest())
      .update(text)
      .digest("hex");
  const claim = await deriveClaim(kid, journal(...KID), blindKey(salt));
  expect(JSON.parse(claim.text)).toMatchObject({
    blind: true,
    input: hmac("/input", "4"),
    output: hmac("/output", "8"),
  });
  const [step] = await Array.fromAsync(readSteps(kid, journal(...KID), blindKey(salt)));
  expect(step).toMatchObject({ in: hmac("Operation(0)/in", '{"n":4}'), out: hmac("Operation(0)/out", "8") });
  const other = await deriveClaim(kid, journal(...KID), blindKey(Buffer.alloc(16)));
  expect(new Set([claim.key, other.key, (await deriveClaim(kid, journal(...KID))).key]).size).toBe(3);
});

test("each command of a workflow has one record, by index; what has no index follows in journal order", async () => {
  const steps = await stepsOf(
    "workflow",
    ["PatchMarked", "", { id: "v2" }],
    ["TaskScheduled", "Task(0)", { index: 0, input: [1], retry: { maxAttempts: 3 }, taskType: "charge", timeout: 5 }],
    ["ChildWorkflowInitiated", "ChildWorkflow(0)", { childExecutionId: "x/1", childExecutionName: "sub", index: 2 }],
    ["ChildSignalled", "ChildWorkflow(0)", { childExecutionId: "x/1", index: 9, name: "add", value: 1 }],
    ["ChildCancelRequested", "ChildWorkflow(0)", { childExecutionId: "x/1", index: 10 }],
    ["OperationRetried", "Operation(0)", { delay: 1, error: new Error("once"), index: 1, operationName: "read" }],
    ["TimerStarted", "Timer(0)", { index: 3, ms: 50, timerId: "pause" }],
    ["TimerStarted", "Timer(1)", { index: 4, ms: 60, timerId: "sleep" }],
    ["TimerCancelled", "Timer(1)", { index: 11, timerId: "sleep" }],
    ["TaskScheduled", "Task(1)", { index: 5, taskType: "mail" }],
    ["TaskCancelled", "Task(1)", { index: 12, reason: "late" }],
    ["StateSet", "State(0)", { index: 6, key: "n", value: 7 }],
    ["StateCleared", "State(1)", { index: 7 }],
    ["MessageSent", "Message(0)", { destination: "mail", index: 8, payload: "hello" }],
    ["SignalReceived", "", { name: "go", value: 2 }],
    ["UpdateRequested", "Update(1f)", { args: 3, id: "1f", name: "raise" }],
    ["OperationCompleted", "Operation(0)", { attempt: 1, index: 1, operationName: "read", result: "text" }],
    ["ChildWorkflowFailed", "ChildWorkflow(0)", { childExecutionId: "x/1", error: "broken" }],
    ["InputChanged", "Task(0)", { what: "task input" }],
    ["BudgetRaised", "", { add: { usd: 2 }, by: "ann" }],
    ["BudgetDeclined", "", { by: "ann" }],
    ["BudgetRaised", "", { woken: ["Operation(0)"] }],
    ["TaskCompleted", "Task(0)", { attempt: 2, failures: [1, 2], result: "paid" }],
    ["UpdateCompleted", "Update(1f)", { id: "1f", result: 4 }],
    ["TimerFired", "Timer(0)"],
    ["DeadlineExceeded", ""],
    ["TaskScheduled", "Task(2)", { index: 13, taskType: "open" }],
    ["SettleRequested", "Settle(0)", { definition: "o", index: 14, promiseId: "ok[ann]", runId: "o-1", value: true }],
    ["SettleAnswered", "Settle(0)", { promiseId: "ok[ann]", runId: "o-1", status: "repeated" }],
    ["SettleRequested", "Settle(1)", { definition: "o", error: "no", index: 15, promiseId: "ok", runId: "o-1" }],
    ["SettleAnswered", "Settle(1)", { promiseId: "ok", runId: "o-1", status: "no_run" }],
  );
  expect(steps).toEqual([
    { command: "Task(0)", kind: "task", name: "charge", in: "[1]", out: '"paid"' },
    { command: "Operation(0)", kind: "operation", name: "read", out: '"text"' },
    { command: "ChildWorkflow(0)", kind: "child", name: "sub", error: '"broken"' },
    { command: "Timer(0)", kind: "timer", name: "pause", in: "50", end: "fired" },
    { command: "Timer(1)", kind: "timer", name: "sleep", in: "60", end: "cancelled" },
    { command: "Task(1)", kind: "task", name: "mail", end: "cancelled" },
    { command: "State(0)", kind: "state", name: "n", out: "7" },
    { command: "State(1)", kind: "state", end: "cleared" },
    { command: "Message(0)", kind: "message", name: "mail", in: '"hello"' },
    { command: "ChildWorkflow(0)/Signal(0)", kind: "child-signal", name: "add", in: "1" },
    { command: "ChildWorkflow(0)/Cancel(1)", kind: "child-cancel" },
    { command: "Task(2)", kind: "task", name: "open" },
    { command: "Settle(0)", kind: "settle", name: "ok[ann]", in: "true", end: "accepted" },
    { command: "Settle(1)", kind: "settle", name: "ok", error: '"no"', end: "no_run" },
    { command: "Patch", kind: "patch", name: "v2" },
    { command: "Signal(0)", kind: "signal", name: "go", out: "2" },
    { command: "Update(0)", kind: "update", name: "raise", in: "3", out: "4" },
    { command: "Cancel", kind: "cancel", name: "deadline" },
  ]);
});

test("a task that the code cancels and that finishes to be undone keeps both, its end and its result", async () => {
  const steps = await stepsOf(
    "workflow",
    ["TaskScheduled", "Task(0)", { index: 0, taskType: "hold" }],
    ["TaskCancelRequested", "Task(0)", { index: 1 }],
    ["TaskCompleted", "Task(0)", { result: "7A" }],
  );
  expect(steps).toEqual([{ command: "Task(0)", kind: "task", name: "hold", end: "cancelled", out: '"7A"' }]);
});

test("every wait on a promise has its value, whichever of them the settlement names, and who settled it is in no record", async () => {
  const wait = (n: number, promiseId = "ok[ann]"): Line => [
    "PromiseCreated",
    `Promise(${n})`,
    { index: n, key: "ann", promiseId, timeout: 9 },
  ];
  const settled: Line = ["PromiseResolved", "Promise(0)", { by: "ann", key: "ann", promiseId: "ok[ann]", value: 1 }];
  const before: Line = ["PromiseResolved", "", { by: "bob", promiseId: "ok[ann]", reason: "policy", value: 1 }];
  const expected = [0, 1].map((n) => ({ command: `Promise(${n})`, kind: "promise", name: "ok[ann]", out: "1" }));
  expect(await stepsOf("workflow", wait(0), wait(1), settled)).toEqual(expected);
  expect(await stepsOf("workflow", wait(0), settled, wait(1))).toEqual(expected);
  expect(await stepsOf("workflow", before, wait(0), wait(1))).toEqual(expected);
  expect(await stepsOf("workflow", wait(0), ["PromiseTimedOut", "Promise(0)"], settled)).toEqual([
    { command: "Promise(0)", kind: "promise", name: "ok[ann]", end: "timed-out" },
  ]);
  expect(await stepsOf("workflow", wait(0), ["CancelRequested", ""], before)).toEqual([
    { command: "Promise(0)", kind: "promise", name: "ok[ann]" },
    { command: "Cancel", kind: "cancel", name: "cancel" },
  ]);
});

test("a wait for a signal has a record only if it timed out", async () => {
  const receive = (n: number): Line => [
    "PromiseCreated",
    `Promise(${n})`,
    { index: n, promiseId: "go", receives: ["go"] },
  ];
  const steps = await stepsOf(
    "workflow",
    receive(0),
    ["SignalReceived", "Promise(0)", { name: "go" }],
    receive(1),
    ["PromiseTimedOut", "Promise(1)"],
    receive(2),
  );
  expect(steps).toEqual([
    { command: "Promise(1)", kind: "promise", name: "go", end: "timed-out" },
    { command: "Signal(0)", kind: "signal", name: "go" },
  ]);
});

test("of a graph, the commands of the attempt that ended a node count, without attempt and epoch, before the node", async () => {
  const operation = (command: string, index: number, result: unknown): Line => [
    "OperationCompleted",
    command,
    { index, operationName: "io", result },
  ];
  const steps = await stepsOf(
    "graph",
    ["StepCommitted", "", { delta: { set: { n: 0 } }, frontier: [], key: "k0", step: 0 }],
    operation("Node(1.1)#0/Operation(0)", 3, "lost"),
    operation("Node(1.0)#0/Operation(0)", 2, "a"),
    ["NodeRetried", "Node(1.1)", { attempt: 0, delay: 1, error: "x", index: 1, operationName: "b" }],
    operation("Node(1.1)#1/Operation(1)", 6, "second"),
    operation("Node(1.1)#1/Operation(0)", 5, "first"),
    ["PromiseCreated", "Node(1.1)#1/Promise(0)", { index: 7, promiseId: "ok" }],
    ["NodeCompleted", "Node(1.1)", { attempt: 1, index: 1, operationName: "b", result: { change: {} } }],
    ["NodeCompleted", "Node(1.0)", { index: 0, operationName: "a", result: 1 }],
    ["PromiseResolved", "Node(1.1)#1/Promise(0)", { promiseId: "ok", value: 1 }],
    ["StepCommitted", "", { delta: {}, frontier: [1], key: "k1", label: "here", step: 1, waiting: [2] }],
    ["CancelRequested", ""],
  );
  expect(steps).toEqual([
    { command: "Step(0)", kind: "step", out: '{"delta":{"set":{"n":0}},"frontier":[]}' },
    { command: "Node(1.0)/Operation(0)", kind: "operation", name: "io", out: '"a"' },
    { command: "Node(1.0)", kind: "node", name: "a", out: "1" },
    { command: "Node(1.1)/Operation(0)", kind: "operation", name: "io", out: '"first"' },
    { command: "Node(1.1)/Operation(1)", kind: "operation", name: "io", out: '"second"' },
    { command: "Node(1.1)/Promise(0)", kind: "promise", name: "ok" },
    { command: "Node(1.1)", kind: "node", name: "b", out: '{"change":{}}' },
    { command: "Step(1)", kind: "step", name: "here", out: '{"delta":{},"frontier":[1],"waiting":[2]}' },
    { command: "Cancel", kind: "cancel", name: "cancel" },
  ]);
});

test("of a graph, no command of an attempt that was retried counts, however late it ends and whatever the next attempt requests", async () => {
  const operation = (command: string, result: unknown): Line => [
    "OperationCompleted",
    command,
    { index: 1, operationName: "io", result },
  ];
  const retried: Line = [
    "NodeRetried",
    "Node(1.0)",
    { attempt: 0, delay: 1, error: "x", index: 0, operationName: "a" },
  ];
  const ended: Line = ["NodeCompleted", "Node(1.0)", { attempt: 1, index: 0, operationName: "a", result: 1 }];
  const node = { command: "Node(1.0)", kind: "node", name: "a", out: "1" };
  const first = operation("Node(1.0)#0/Operation(0)", "first");
  const second = operation("Node(1.0)#1/Operation(0)", "second");
  const counted = { command: "Node(1.0)/Operation(0)", kind: "operation", name: "io", out: '"second"' };
  expect(await stepsOf("graph", first, retried)).toEqual([]);
  expect(await stepsOf("graph", first, retried, ended)).toEqual([node]);
  expect(await stepsOf("graph", first, ended)).toEqual([node]);
  expect(await stepsOf("graph", second, first, ended)).toEqual([counted, node]);
  expect(await stepsOf("graph", first, second, ended)).toEqual([counted, node]);
});

test("of a flow, the first end of each node counts, by name in bytes; a spread has its whole list", async () => {
  const steps = await stepsOf(
    "flow",
    ["NodeCompleted", "x[]", { result: 3 }],
    ["ItemsSpread", "x[]", { from: 0, items: [1, 2], keys: ["a", null] }],
    ["ItemsSpread", "x[]", { from: 2, items: [3] }],
    ["NodeCompleted", "x[10]", { result: "ten" }],
    ["NodeFailed", "x[2]", { attempt: 1, error: "two", failures: [1], stack: "at x" }],
    ["NodeCompleted", "x[2]", { result: "later" }],
    [
      "ChildWorkflowInitiated",
      "call",
      { childExecutionId: "c", childExecutionName: "sub", given: "d", index: 0, input: 5 },
    ],
    ["NodeCompleted", "x", {}],
    ["NodeCompleted", "\u{1F389}", { caught: "was", result: 0 }],
    ["NodeCompleted", "\uFF5E", { kept: { y: 1 }, result: 1, skipped: ["z"] }],
    ["NodeCompleted", "empty[]", { result: 0 }],
    ["NodeSkipped", "x!"],
    ["NodeCompleted", "call", { result: 6 }],
  );
  expect(steps).toEqual([
    { command: "call", kind: "node", name: "sub", in: "5", out: "6" },
    { command: "empty[]", kind: "node", out: "[]" },
    { command: "x", kind: "node" },
    { command: "x[]", kind: "node", out: "[1,2,3]" },
    { command: "x[2]", kind: "node", error: '"two"' },
    { command: "x[10]", kind: "node", out: '"ten"' },
    { command: "x!", kind: "node", end: "skipped" },
    { command: "\uFF5E", kind: "node", out: "1", kept: '{"y":1}', skipped: '["z"]' },
    { command: "\u{1F389}", kind: "node", out: "0", error: '"was"' },
  ]);
});

test("a claim of each end says how the run ended, and no value is in it", async () => {
  const ends: [Line[], object][] = [
    [[], { end: "open" }],
    [[["RunCompleted", "", {}]], { end: "completed" }],
    [[["RunFailed", "", { at: "Task(0)", error: "x", stack: "at y" }]], { end: "failed", error: valueKey('"x"') }],
    [[["RunCancelled", "", { reason: "why" }]], { end: "cancelled" }],
    [
      [["RunContinued", "", { given: "sha256:00", version: 3 }]],
      { end: "continued", next: { given: valueKey('"sha256:00"'), version: 3 } },
    ],
  ];
  for (const [lines, expected] of ends) {
    const { text } = await deriveClaim(program("workflow"), journal(["RunStarted", "", { version: 1 }], ...lines));
    const root = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    expect(decode(text)).toEqual({ ...expected, kind: "workflow", name: "program", root, steps: 0, v: 1, version: 1 });
  }
});

test("a claim of a fork has its position and the messages of its origin, and nothing that identifies the origin", async () => {
  const delivered = [{ type: "PromiseResolved", data: { promiseId: "ok", value: "early" } }];
  const at = { run: "origin-7", seq: 5, chain: "ab", generation: 2 };
  const entries = (forked: object): JournalSource =>
    journal(
      ["RunStarted", "", { forked, seed: 12n, version: 1 }],
      ["StepCommitted", "", { delta: {}, frontier: [], key: "k", step: 3 }],
      ["PromiseCreated", "Node(4.0)#0/Promise(0)", { index: 1, promiseId: "ok" }],
      ["NodeCompleted", "Node(4.0)", { index: 0, operationName: "n" }],
    );
  const graph = program("graph");
  const { text } = await deriveClaim(graph, entries({ ...at, step: 3, ["told"]: delivered }));
  const seed = valueKey(encode(12n));
  expect(decode(text)).toMatchObject({ fork: { seed, step: 3, ["told"]: valueKey(encode(delivered)) } });
  const by = [{ type: "PromiseResolved", data: { by: "ann", promiseId: "ok", reason: "policy", value: "early" } }];
  const elsewhere = await deriveClaim(graph, entries({ run: "other", chain: "cd", seq: 9, step: 3, ["told"]: by }));
  expect(elsewhere.text).toBe(text);
  const steps = await Array.fromAsync(readSteps(graph, entries({ ...at, step: 3, ["told"]: delivered }), shown));
  expect(steps[1]).toMatchObject({ command: "Node(4.0)/Promise(0)", out: '"early"' });
  const byCommand = await deriveClaim(graph, entries({ ...at, at: "Task(3)", answers: { a: 1 } }));
  expect(decode(byCommand.text)).toMatchObject({ fork: { seed, at: "Task(3)", answers: valueKey('{"a":1}') } });
});

test("a run that failed and was retried has the claim of one that never failed", async () => {
  const scheduled: Line = ["TaskScheduled", "Task(0)", { index: 0, input: 1, taskType: "charge" }];
  const completed: Line = ["TaskCompleted", "Task(0)", { result: 2 }];
  const smooth = [KID[0]!, scheduled, completed, ["RunCompleted", "", { output: 2 }]] as const satisfies Line[];
  const rough: Line[] = [
    KID[0]!,
    scheduled,
    ["TaskFailed", "Task(0)", { error: "x" }],
    ["TaskScheduled", "Task(1)", { index: 1, taskType: "report" }],
    ["RunFailed", "", { at: "Task(0)", commands: 1, error: "x" }],
    ["RunRetried", "", { commands: 1, from: 3 }],
    completed,
    ["RunCompleted", "", { output: 2 }],
  ];
  const expected = await deriveClaim(kid, journal(...smooth));
  expect(await deriveClaim(kid, journal(...rough))).toEqual(expected);

  const node: Line = ["NodeCompleted", "a", { result: 2 }];
  const before = [KID[0]!, node, ["RunCompleted", "", { output: 2 }]] as const satisfies Line[];
  const after: Line[] = [
    KID[0]!,
    ["NodeFailed", "a", { error: "x" }],
    ["RunFailed", "", { entries: 1, error: "x" }],
    ["RunRetried", "", { commands: 0, from: 2 }],
    ...before.slice(1),
  ];
  const flow = program("flow");
  expect(await deriveClaim(flow, journal(...after))).toEqual(await deriveClaim(flow, journal(...before)));
});

test("a journal is read once, and a second time only if its run was retried", async () => {
  let readings = 0;
  const counted = (source: JournalSource): JournalSource => ({ pages: () => (readings++, source.pages()) });
  await deriveClaim(kid, counted(journal(...KID)));
  expect(readings).toBe(1);
  const end: Line = ["RunFailed", "", { commands: 0, error: "x" }];
  const lines: Line[] = [KID[0]!, end, ["RunRetried", "", { commands: 0, from: 2 }], ...KID.slice(1)];
  await deriveClaim(kid, counted(journal(...lines)));
  expect(readings).toBe(3);
});

test("what is not a journal of this version is refused", async () => {
  const derive = (...lines: readonly Line[]): Promise<unknown> => deriveClaim(kid, journal(KID[0]!, ...lines));
  const refused = expect.objectContaining({ code: "STORE_CORRUPT" }) as Error;
  await expect(derive(["Imagined" as EntryType, ""])).rejects.toThrow(/Entry 2 of a workflow has the type Imagined/);
  await expect(derive(["TaskScheduled", "Task(0)", {}])).rejects.toThrow(refused);
  await expect(derive(["TaskScheduled", "Task(0)", { index: 2 ** 40, taskType: "x" }])).rejects.toThrow(refused);
  await expect(derive(["TaskScheduled", "Task(0)", { index: 0, taskType: 7 }])).rejects.toThrow(refused);
  await expect(derive(["RunRetried", "", { commands: 0, from: 1, kept: 5 }])).rejects.toThrow(refused);
});

test("a run that was migrated has the claim of one that had its version from the start", async () => {
  const expected = await deriveClaim(kid, journal(...KID));
  const [first, ...rest] = KID;
  expect(await deriveClaim(kid, journal(first!, ["RunMigrated", "", { from: 2, to: 1 }], ...rest))).toEqual(expected);
});
