// Matching: which recorded entry a command is compared with, and what happens when they differ (seed 004, rules.W2, rules.W3).

import { expect, test } from "vitest";
import { decode, digestOf, systemTimers } from "../../src/base/index.ts";
import {
  findJournalFault,
  promise,
  signal,
  task,
  type Definition,
  type Entry,
  type EntryType,
} from "../../src/kernel/index.ts";
import { MATRIX, replayJournal, workflow, workflowBody, type CommandName } from "../../src/workflow/index.ts";
import { drained, journalOf, LiveRun, startedEntry, testHost, type LiveRunOptions } from "./live-run.ts";

const taskA = task("TaskA", (_ctx, input: number | void) => `a${input ?? ""}`);
const taskB = task("TaskB", () => "b");

/** The message of a violation, with its advice. */
const violation = (text: string): string => `${text}. Restore the code, or guard the change with ctx.patched(…).`;

const PER_TYPE: LiveRunOptions = { determinism: "per-type" };

/** A journal of this definition with the given lines after its start. */
function recordedAs(definition: Definition, ...lines: [type: EntryType, command: string, data: object][]): Entry[] {
  return journalOf([
    ["RunStarted", "", startedEntry(definition).data],
    ...lines.map(([type, command, data]) => [type, command, JSON.stringify(data)] as const),
  ]).entries;
}

function permutations<T>(of: readonly T[]): T[][] {
  if (of.length <= 1) return [[...of]];
  return of.flatMap((each, index) => permutations(of.toSpliced(index, 1)).map((rest) => [each, ...rest]));
}

// ── ACCEPTANCE 23 ──

test("ACCEPTANCE 23: terminal entries in any order give the same results and no new command", async () => {
  const parallel = workflow("parallel", async (ctx) => {
    const [a, b, slept] = await Promise.all([ctx.task(taskA, 1), ctx.task(taskB), ctx.sleep("5 s")]);
    return { a, b, slept };
  });
  const terminals = permutations<[EntryType, string, object]>([
    ["TaskCompleted", "Task(0)", { result: "a" }],
    ["TaskCompleted", "Task(1)", { result: "b" }],
    ["TimerFired", "Timer(0)", {}],
  ]);
  expect(terminals).toHaveLength(6);
  for (const ends of terminals) {
    const entries = recordedAs(
      parallel,
      ["TaskScheduled", "Task(0)", { index: 0, input: 1, taskType: "TaskA" }],
      ["TaskScheduled", "Task(1)", { index: 1, taskType: "TaskB" }],
      ["TimerStarted", "Timer(0)", { index: 2, ms: 5000, timerId: "sleep" }],
      ...ends,
    );
    const run = await LiveRun.resume(parallel, entries);
    expect(run.stop).toBeUndefined();
    expect(run.requested).toEqual([]);
    expect(run.execution.outcome).toEqual({ status: "returned", value: { a: "a", b: "b", slept: undefined } });
  }
});

// ── ACCEPTANCE 24 ──

/** Resumes in both modes and expects this stop: nothing settles, and the code makes no requests. */
async function expectViolation(
  definition: Definition,
  entries: readonly Entry[],
  message: string,
  where: string,
  seen: readonly string[] = [],
): Promise<void> {
  for (const determinism of ["per-type", "strict"] as const) {
    const run = await LiveRun.resume(definition, entries, { determinism });
    await drained();
    expect(run.stop).toMatchObject({
      status: "determinism_violation",
      code: "DETERMINISM_VIOLATION",
      message: violation(message),
      where,
    });
    expect(run.execution.outcome).toBeUndefined();
    expect(run.execution.requests).toEqual([]);
    expect(run.entries).toEqual(entries);
    expect(seen).toEqual([]);
  }
}

test("ACCEPTANCE 24: a violation names the other task and its command", async () => {
  const seen: string[] = [];
  const changed = workflow("changed", async (ctx) => {
    await ctx.task(taskA);
    await ctx.task(taskA);
    try {
      return await ctx.task(taskB);
    } catch (error) {
      seen.push(`caught ${String(error)}`);
      return "compensated";
    } finally {
      seen.push("finally");
    }
  });
  const scheduled = (index: number): [EntryType, string, object] => [
    "TaskScheduled",
    `Task(${index})`,
    { index, taskType: "TaskA" },
  ];
  const completed = (index: number): [EntryType, string, object] => [
    "TaskCompleted",
    `Task(${index})`,
    { result: "a" },
  ];
  const entries = recordedAs(changed, ...[0, 1, 2].flatMap((index) => [scheduled(index), completed(index)]));
  await expectViolation(
    changed,
    entries,
    "the journal recorded task 'TaskA'; the code now calls task 'TaskB' (at Task(2))",
    "Task(2)",
    seen,
  );
});

const invoice = workflow("invoice", async () => 1);

const parent = workflow("parent", async (ctx) => ctx.child(invoice));

/** The id of the first child of the run, in its first epoch. */
const DEFAULT_CHILD_ID = digestOf("reprise/child/v1", "run-1", 0, 0).slice(0, 32);

function invoiceWithId(childExecutionId: string, index = 0): object {
  return { childExecutionId, childExecutionName: "invoice", childWorkflowKind: "workflow", index };
}

/** One row of the matrix: code that requests something, and a journal that recorded something else. */
interface Disagreement {
  readonly row: CommandName;
  readonly definition: Definition;
  readonly lines: readonly [type: EntryType, command: string, data: object][];
  readonly message: string;
}

const ports = { approval: promise<number>(), payment: promise<number>() };

const DISAGREEMENTS: readonly Disagreement[] = [
  {
    row: "ScheduleTask",
    definition: workflow("w", async (ctx) => ctx.task(taskB)),
    lines: [["TaskScheduled", "Task(0)", { index: 0, taskType: "TaskA" }]],
    message: "the journal recorded task 'TaskA'; the code now calls task 'TaskB' (at Task(0))",
  },
  {
    row: "ScheduleChildWorkflow",
    definition: parent,
    lines: [
      [
        "ChildWorkflowInitiated",
        "ChildWorkflow(0)",
        { childExecutionId: "c", childExecutionName: "receipt", childWorkflowKind: "workflow", index: 0 },
      ],
    ],
    message:
      "the journal recorded child workflow 'receipt'; the code now starts child workflow 'invoice' (at ChildWorkflow(0))",
  },
  {
    row: "ScheduleChildWorkflow",
    definition: parent,
    lines: [
      [
        "ChildWorkflowInitiated",
        "ChildWorkflow(0)",
        { childExecutionId: "c", childExecutionName: "invoice", childWorkflowKind: "graph", index: 0 },
      ],
    ],
    message:
      "the journal recorded a child of kind 'graph'; the code now starts a child of kind 'workflow' (at ChildWorkflow(0))",
  },
  {
    row: "ScheduleChildWorkflow",
    definition: workflow("w", async (ctx) => ctx.child(invoice, undefined, { id: "invoice-2" })),
    lines: [["ChildWorkflowInitiated", "ChildWorkflow(0)", invoiceWithId("invoice-1")]],
    message:
      "the journal recorded the child with id 'invoice-1'; the code now starts the child with id 'invoice-2' (at ChildWorkflow(0))",
  },
  {
    row: "ScheduleChildWorkflow",
    definition: parent,
    lines: [["ChildWorkflowInitiated", "ChildWorkflow(0)", invoiceWithId("invoice-1")]],
    message: `the journal recorded the child with id 'invoice-1'; the code now starts the child with id '${DEFAULT_CHILD_ID}' (at ChildWorkflow(0))`,
  },
  {
    row: "RecordOperation",
    definition: workflow("w", async (ctx) => ctx.run("fetch", () => 1)),
    lines: [["OperationCompleted", "Operation(0)", { index: 0, operationName: "load", result: 1 }]],
    message: "the journal recorded step 'load'; the code now runs step 'fetch' (at Operation(0))",
  },
  {
    row: "RecordOperation",
    definition: workflow("w", async (ctx) => ctx.run("fetch", () => 1)),
    lines: [["OperationRetried", "Operation(0)", { delay: 5, error: {}, index: 0, operationName: "load" }]],
    message: "the journal recorded step 'load'; the code now runs step 'fetch' (at Operation(0))",
  },
  {
    row: "SetState",
    definition: workflow("w", async (ctx) => {
      ctx.state.set("total", 1);
      await ctx.promise;
    }),
    lines: [["StateSet", "State(0)", { index: 0, key: "sum", value: 1 }]],
    message: "the journal recorded state key 'sum'; the code now sets state key 'total' (at State(0))",
  },
  {
    row: "SetState",
    definition: workflow("w", async (ctx) => ctx.state.set("total", 1)),
    lines: [["StateCleared", "State(0)", { index: 0, key: "total" }]],
    message: "the journal recorded 'StateCleared'; the code now requests 'StateSet' (at State(0))",
  },
  {
    row: "ClearState",
    definition: workflow("w", async (ctx) => ctx.state.clear("total")),
    lines: [["StateCleared", "State(0)", { index: 0, key: "sum" }]],
    message: "the journal recorded state key 'sum'; the code now clears state key 'total' (at State(0))",
  },
  {
    row: "ClearState",
    definition: workflow("w", async (ctx) => ctx.state.clear()),
    lines: [["StateSet", "State(0)", { index: 0, key: "sum", value: 1 }]],
    message: "the journal recorded 'StateSet'; the code now requests 'StateCleared' (at State(0))",
  },
  {
    row: "StartTimer",
    definition: workflow("w", async (ctx) => ctx.sleep("1 s")),
    lines: [["TimerStarted", "Timer(0)", { index: 0, ms: 1000, timerId: "sleepUntil" }]],
    message: "the journal recorded timer 'sleepUntil'; the code now starts timer 'sleep' (at Timer(0))",
  },
  {
    row: "StartTimer",
    definition: workflow("w", async (ctx) => ctx.sleep("1 s", { id: "renewal" })),
    lines: [["TimerStarted", "Timer(0)", { index: 0, ms: 1000, timerId: "reminder" }]],
    message: "the journal recorded timer 'reminder'; the code now starts timer 'renewal' (at Timer(0))",
  },
  {
    row: "StartTimer",
    definition: workflow("w", async (ctx) => ctx.sleep("1 s", { id: "renewal" })),
    lines: [["TimerStarted", "Timer(0)", { index: 0, ms: 1000, timerId: "sleep" }]],
    message: "the journal recorded timer 'sleep'; the code now starts timer 'renewal' (at Timer(0))",
  },
  {
    row: "CancelTimer",
    definition: workflow("w", async (ctx) => {
      const timer = ctx.sleep("1 s");
      timer.cancel();
      await timer;
    }),
    lines: [
      ["TimerStarted", "Timer(0)", { index: 0, ms: 1000, timerId: "sleep" }],
      ["TimerCancelled", "Timer(0)", { index: 1, timerId: "sleepUntil" }],
    ],
    message: "the journal recorded the cancel of timer 'sleepUntil'; the code now cancels timer 'sleep' (at Timer(0))",
  },
  {
    row: "CreatePromise",
    definition: workflow("w", { ports }, async (ctx) => ctx.promise("approval")),
    lines: [["PromiseCreated", "Promise(0)", { index: 0, promiseId: "payment" }]],
    message: "the journal recorded promise 'payment'; the code now waits for promise 'approval' (at Promise(0))",
  },
  {
    row: "ResolvePromise",
    definition: workflow("w", { ports }, async (ctx) => ctx.promise("approval")),
    lines: [
      ["PromiseCreated", "Promise(0)", { index: 0, promiseId: "approval" }],
      ["PromiseResolved", "Promise(0)", { promiseId: "payment", value: 1 }],
    ],
    message:
      "the journal recorded a value for promise 'payment'; the code now waits for promise 'approval' (at Promise(0))",
  },
];

for (const { row, definition, lines, message } of DISAGREEMENTS)
  test(`ACCEPTANCE 24: ${row}: ${message}`, async () => {
    const entries = recordedAs(definition, ...lines);
    const where = lines[0]![1];
    for (const determinism of ["per-type", "strict"] as const) {
      const run = await LiveRun.resume(definition, entries, { determinism });
      expect(run.stop).toMatchObject({ status: "determinism_violation", message: violation(message), where });
      expect(run.stop?.seq).toBe(entries.length);
      expect(run.entries).toEqual(entries);
    }
  });

test("ACCEPTANCE 24: every row of the matrix has its test", () => {
  const tested = new Set(DISAGREEMENTS.map(({ row }) => row));
  expect(Object.keys(MATRIX).filter((row) => !tested.has(row as CommandName))).toEqual([]);
  expect(Object.keys(MATRIX)).toHaveLength(9);
});

test("a message goes to the recorded child, also where the code would now derive another id for it", async () => {
  const basket = workflow("basket", { ports: { add: signal<number>() } }, async (ctx) => ctx.receive("add"));
  const order = workflow("order", async (ctx) => {
    // Added after the child was started: its index is now that of a command after the retry.
    ctx.state.set("a", 1);
    ctx.state.set("b", 1);
    const child = ctx.child(basket);
    await child.signal("add", 1);
    await child.cancel();
    return [child.id, await child];
  });
  const entries = recordedAs(
    order,
    [
      "ChildWorkflowInitiated",
      "ChildWorkflow(0)",
      {
        childExecutionId: DEFAULT_CHILD_ID,
        childExecutionName: "basket",
        childWorkflowKind: "workflow",
        index: 0,
      },
    ],
    ["TaskScheduled", "Task(0)", { index: 1, taskType: "TaskA" }],
    ["TaskFailed", "Task(0)", { error: {} }],
    ["RunFailed", "", { at: "Task(0)", commands: 2, error: {} }],
    ["RunRetried", "", { commands: 2, from: 4 }],
  );
  const run = await LiveRun.resume(order, entries, PER_TYPE);
  expect(run.stop).toBeUndefined();
  const sent = run.entries.filter(({ type }) => type === "ChildSignalled" || type === "ChildCancelRequested");
  expect(sent.map(({ data }) => (decode(data) as { childExecutionId: string }).childExecutionId)).toEqual([
    DEFAULT_CHILD_ID,
    DEFAULT_CHILD_ID,
  ]);
  await run.commit(run.answerOf("ChildWorkflow(0)", { value: 1 }));
  expect(run.execution.outcome).toEqual({ status: "returned", value: [DEFAULT_CHILD_ID, 1] });
});

test("after a violation nothing settles in any branch", async () => {
  const seen: string[] = [];
  const branches = workflow("branches", { ports }, async (ctx) => {
    const note = (name: string, wait: Promise<unknown>): Promise<void> =>
      wait.then(
        () => void seen.push(`${name} resolved`),
        () => void seen.push(`${name} rejected`),
      );
    void note("first", ctx.task(taskA));
    const timer = ctx.sleep("1 s");
    void note("timer", timer);
    void note("wrong", ctx.task(taskB));
    void note("after", ctx.task(taskA));
    void note(
      "operation",
      ctx.run("call", () => 1),
    );
    void note("promise", ctx.promise("approval"));
    void note("child", ctx.child(invoice));
    ctx.state.set("key", 1);
    timer.cancel();
    await Promise.withResolvers().promise;
  });
  const entries = recordedAs(
    branches,
    ["TaskScheduled", "Task(0)", { index: 0, taskType: "TaskA" }],
    ["TimerStarted", "Timer(0)", { index: 1, ms: 1000, timerId: "sleep" }],
    ["TaskScheduled", "Task(1)", { index: 2, taskType: "TaskA" }],
    ["TaskCompleted", "Task(0)", { result: 1 }],
    ["TimerFired", "Timer(0)", {}],
  );
  await expectViolation(
    branches,
    entries,
    "the journal recorded task 'TaskA'; the code now calls task 'TaskB' (at Task(1))",
    "Task(1)",
    seen,
  );
  const run = await LiveRun.resume(branches, entries);
  run.execution.deliveries.deliver({ type: "TaskCompleted", command: "Task(0)", data: { result: 1 }, at: 0 });
  run.execution.deliveries.deliver({ type: "CancelRequested", command: "", data: {}, at: 0 });
  await drained();
  expect(seen).toEqual([]);
});

test("an unregistered task blocks the run before the journal changes", async () => {
  const seen: string[] = [];
  const calling = workflow("calling", async (ctx) =>
    ctx.task(taskA).catch((error: unknown) => seen.push(String(error))),
  );
  const run = await LiveRun.start(calling, undefined, { unregistered: ["TaskA"] });
  expect(run.stop).toMatchObject({ status: "blocked", code: "UNKNOWN_TASK", where: "Task(0)", expected: "TaskA" });
  expect(run.types).toEqual(["RunStarted"]);
  expect(run.execution.requests).toEqual([]);
  expect(seen).toEqual([]);
  const child = await LiveRun.start(parent, undefined, { unregistered: ["invoice"] });
  expect(child.stop).toMatchObject({ status: "blocked", code: "UNKNOWN_DEFINITION", where: "ChildWorkflow(0)" });
  expect(child.types).toEqual(["RunStarted"]);
});

// ── ACCEPTANCE 25 ──

function loop(times: number): Definition {
  return workflow("loop", async (ctx) => {
    const results: string[] = [];
    for (let turn = 0; turn < times; turn += 1) results.push(await ctx.task(taskA, turn));
    return results;
  });
}

async function threeTurns(): Promise<Entry[]> {
  const run = await LiveRun.start(loop(3));
  await run.finish("Task(0)", "Task(1)");
  return [...run.entries];
}

test("ACCEPTANCE 25: a loop of 3 extended to 4 continues, with Task(3) as its only new command", async () => {
  for (const determinism of ["per-type", "strict"] as const) {
    const run = await LiveRun.resume(loop(4), await threeTurns(), { determinism });
    await run.commit(run.answerOf("Task(2)", { value: "a2" }));
    expect(run.requested).toEqual(["Task(3)"]);
    await run.finish("Task(3)");
    expect(run.stop).toBeUndefined();
    expect(run.execution.outcome).toEqual({ status: "returned", value: ["a0", "a1", "a2", "a3"] });
    expect(run.logs).toEqual([]);
  }
});

test("ACCEPTANCE 25: a loop of 3 shortened to 2 completes and reports Task(2); strict replay refuses it", async () => {
  const orphan = "the journal recorded 'TaskScheduled'; the code now ends without requesting it (at Task(2))";
  const lenient = await LiveRun.resume(loop(2), await threeTurns(), PER_TYPE);
  expect(lenient.stop).toBeUndefined();
  expect(lenient.execution.outcome).toEqual({ status: "returned", value: ["a0", "a1"] });
  expect(lenient.warnings).toEqual([orphan]);
  expect(lenient.logs).toEqual([`warn: ${orphan}`]);
  const strict = await LiveRun.resume(loop(2), await threeTurns());
  expect(strict.stop).toMatchObject({
    status: "determinism_violation",
    message: violation(orphan),
    where: "Task(2)",
    seq: 6,
  });
});

test("ACCEPTANCE 25: a timer that the code no longer cancels is reported", async () => {
  const before = workflow("w", async (ctx) => {
    const timer = ctx.sleep("1 s");
    timer.cancel();
    return ctx.task(taskA);
  });
  const after = workflow("w", async (ctx) => {
    void ctx.sleep("1 s");
    return ctx.task(taskA);
  });
  const run = await LiveRun.start(before);
  await run.finish("Task(0)");
  const lenient = await LiveRun.resume(after, run.entries, PER_TYPE);
  expect(lenient.warnings).toEqual([
    "the journal recorded 'TimerCancelled'; the code now ends without requesting it (at Timer(0))",
  ]);
});

test("ACCEPTANCE 25: per type, a command that the code requests after it has caught up is matched with its entry", async () => {
  const before = workflow("w", async (ctx) => [await ctx.task(taskA, 0), await ctx.task(taskA, 1)]);
  const after = workflow("w", async (ctx) => {
    await ctx.sleep(1);
    return [await ctx.task(taskA, 0), await ctx.task(taskA, 1)];
  });
  const run = await LiveRun.start(before);
  await run.finish("Task(0)");
  const lenient = await LiveRun.resume(after, run.entries, PER_TYPE);
  expect(lenient.requested).toEqual(["Timer(0)"]);
  await lenient.commit(lenient.fires("Timer(0)"));
  expect(lenient.requested).toEqual(["Timer(0)"]);
  await lenient.commit(lenient.answerOf("Task(1)", { value: "a1" }));
  expect(lenient.execution.outcome).toEqual({ status: "returned", value: ["a0", "a1"] });
  // The same, with the completion before the request.
  const early = await LiveRun.resume(after, run.entries, PER_TYPE);
  expect(await early.commit(early.answerOf("Task(1)", { value: "a1" }))).toBe(1);
  expect(await early.commit(early.answerOf("Task(1)", { value: "again" }))).toBe(0);
  await early.commit(early.fires("Timer(0)"));
  expect(early.execution.outcome).toEqual({ status: "returned", value: ["a0", "a1"] });
});

test("ACCEPTANCE 25: an orphan is reported also when the code ends long after it has caught up", async () => {
  const after = workflow("loop", async (ctx) => {
    const first = await ctx.task(taskA, 0);
    ctx.log.info("continuing");
    await ctx.sleep(1);
    return first;
  });
  const lenient = await LiveRun.resume(after, await threeTurns(), PER_TYPE);
  await lenient.commit(lenient.fires("Timer(0)"));
  expect(lenient.execution.outcome).toEqual({ status: "returned", value: "a0" });
  expect(lenient.warnings).toEqual([expect.stringContaining("(at Task(1))"), expect.stringContaining("(at Task(2))")]);
});

// ── ACCEPTANCE 26 ──

test("ACCEPTANCE 26: six counters start at 0, and seq is gap-free and independent of them", async () => {
  const everything = workflow("everything", { ports }, async (ctx) => {
    const waits: Promise<unknown>[] = [];
    for (let turn = 0; turn < 2; turn += 1) {
      waits.push(ctx.task(taskA), ctx.child(invoice), ctx.sleep("1 s"));
      waits.push(
        ctx.run("call", () => 1),
        ctx.promise("approval"),
      );
      ctx.state.set("turn", turn);
    }
    await Promise.all(waits);
    return "done";
  });
  const run = await LiveRun.start(everything);
  const each = ["Task", "ChildWorkflow", "Timer", "Operation", "Promise", "State"];
  expect(run.requested).toEqual([0, 1].flatMap((index) => each.map((type) => `${type}(${index})`)));
  // Completions in another order than creations, so that no two orders agree.
  await run.finish("Operation(1)");
  await run.commit(run.answerOf("ChildWorkflow(1)", { value: 1 }), run.answerOf("ChildWorkflow(0)", { value: 1 }));
  await run.finish("Task(1)", "Operation(0)", "Task(0)");
  await run.commit(run.fires("Timer(1)"), run.settles("approval", { value: 1 }), run.fires("Timer(0)"));
  expect(run.types.at(-1)).toBe("RunCompleted");

  expect(run.entries.map(({ seq }) => seq)).toEqual(run.entries.map((_, index) => index + 1));
  expect(findJournalFault(run.entries, { head: run.entries.length, chain: run.chain })).toBeUndefined();
  // The global command index orders creation; it is stored on the entry that records the command, once.
  const indexes = run.entries.flatMap(({ data }) => /"index":(\d+)/.exec(data)?.[1] ?? []).map(Number);
  expect(indexes.toSorted((left, right) => left - right)).toEqual(Array.from({ length: 12 }, (_, index) => index));
  // Deliveries follow the order of seq, not of per-type sequences.
  const ended = run.entries.filter(({ type }) => type === "TaskCompleted").map(({ command }) => command);
  expect(ended).toEqual(["Task(1)", "Task(0)"]);
  const again = await LiveRun.resume(everything, run.entries);
  expect(again.stop).toBeUndefined();
  expect(again.requested).toEqual([]);
});

// ── ACCEPTANCE 44 ──

test("ACCEPTANCE 44: of two parallel operations only the unfinished one is called again", async () => {
  const calls: string[] = [];
  const parallel = workflow("parallel", async (ctx) => {
    const call = (name: string): Promise<string> =>
      ctx.run(name, () => {
        calls.push(name);
        return name.toUpperCase();
      });
    const [first, second] = await Promise.all([call("first"), call("second")]);
    return ctx.task(taskA).then(() => [first, second]);
  });
  const run = await LiveRun.start(parallel);
  await run.finish("Operation(1)");
  expect(run.types).toEqual(["RunStarted", "OperationCompleted"]);

  calls.length = 0;
  const resumed = await LiveRun.resume(parallel, run.entries);
  expect(resumed.stop).toBeUndefined();
  expect(resumed.requested).toEqual(["Operation(0)"]);
  await resumed.finish("Operation(0)", "Task(0)");
  expect(calls).toEqual(["first"]);
  expect(resumed.execution.outcome).toEqual({ status: "returned", value: ["FIRST", "SECOND"] });
});

test("ACCEPTANCE 44: an unfinished operation is requested again even if later commands are recorded", async () => {
  const mixed = workflow("mixed", async (ctx) => {
    const slow = ctx.run("slow", () => "slow");
    const quick = await ctx.task(taskA);
    return [quick, await slow];
  });
  const run = await LiveRun.start(mixed);
  await run.finish("Task(0)");
  const resumed = await LiveRun.resume(mixed, run.entries);
  expect(resumed.stop).toBeUndefined();
  expect(resumed.requested).toEqual(["Operation(0)"]);
});

test("ACCEPTANCE 7: the attempts of an operation continue from the count in the journal", async () => {
  const stubborn = workflow("stubborn", async (ctx) => ctx.run("call", () => 1, { retry: { maxAttempts: 3 } }));
  const run = await LiveRun.start(stubborn);
  run.retryOperation("Operation(0)", new Error("once"), 1000);
  const resumed = await LiveRun.resume(stubborn, run.entries);
  expect(resumed.stop).toBeUndefined();
  expect(resumed.requested).toEqual(["Operation(0)"]);
  expect(resumed.operation("Operation(0)")).toMatchObject({ attempt: 1, dueAt: run.entries.at(-1)!.at + 1000 });
});

// ── strict ──

async function bothModes(
  recordedBy: Definition,
  replayedBy: Definition,
  play: (run: LiveRun) => Promise<unknown> = async () => {},
): Promise<{ strict: LiveRun; lenient: LiveRun }> {
  const run = await LiveRun.start(recordedBy);
  await play(run);
  const strict = await LiveRun.resume(replayedBy, run.entries);
  const lenient = await LiveRun.resume(replayedBy, run.entries, PER_TYPE);
  return { strict, lenient };
}

function twice(first: number): Definition {
  return workflow("w", async (ctx) => ctx.task(taskA, first));
}

test("strict: another input of a task, child or operation is a violation; per type it is not", async () => {
  const child = workflow("child", async (_ctx, input: number) => input);
  const cases: [make: (input: number) => Definition, message: string][] = [
    [twice, "the journal recorded another task input than the code now passes (at Task(0))"],
    [
      (input) => workflow("w", async (ctx) => ctx.child(child, input)),
      "the journal recorded another child workflow input than the code now passes (at ChildWorkflow(0))",
    ],
    [
      (input) => workflow("w", async (ctx) => ctx.sleep(input)),
      "the journal recorded another timer duration than the code now passes (at Timer(0))",
    ],
    [
      (input) =>
        workflow("w", async (ctx) => {
          ctx.state.set("key", input);
          await ctx.sleep(1);
        }),
      "the journal recorded another state value than the code now passes (at State(0))",
    ],
  ];
  for (const [make, message] of cases) {
    const { strict, lenient } = await bothModes(make(1), make(2));
    expect(strict.stop).toMatchObject({ status: "determinism_violation", message: violation(message) });
    expect(lenient.stop).toBeUndefined();
    expect((await bothModes(make(1), make(1))).strict.stop).toBeUndefined();
  }
  const operation = (input: number): Definition =>
    workflow("w", async (ctx) => ctx.run("call", input, () => 1).then(() => ctx.sleep(1)));
  const { strict, lenient } = await bothModes(operation(1), operation(2), (run) => run.finish("Operation(0)"));
  expect(strict.stop).toMatchObject({
    message: violation("the journal recorded another step input than the code now passes (at Operation(0))"),
  });
  expect(lenient.stop).toBeUndefined();
});

test("strict: commands of different types in another order are a violation; per type they match", async () => {
  const before = workflow("w", async (ctx) => Promise.all([ctx.task(taskA), ctx.sleep(1)]));
  const after = workflow("w", async (ctx) => {
    const timer = ctx.sleep(1);
    return Promise.all([ctx.task(taskA), timer]);
  });
  const { strict, lenient } = await bothModes(before, after);
  expect(strict.stop).toMatchObject({
    status: "determinism_violation",
    message: violation(
      "the journal recorded this command at index 1; the code now requests it at index 0 (at Timer(0))",
    ),
  });
  expect(lenient.stop).toBeUndefined();
  expect(lenient.requested).toEqual([]);
});

test("strict: canceling a timer at another point of the code is a violation", async () => {
  const before = workflow("w", async (ctx) => {
    const timer = ctx.sleep(1);
    timer.cancel();
    await Promise.withResolvers().promise;
  });
  const after = workflow("w", async (ctx) => {
    const timer = ctx.sleep(1);
    void ctx.task(taskA);
    timer.cancel();
    await Promise.withResolvers().promise;
  });
  const { strict, lenient } = await bothModes(before, after);
  expect(strict.stop?.status).toBe("determinism_violation");
  expect(lenient.stop).toBeUndefined();
  expect(lenient.requested).toEqual(["Task(0)"]);
});

test("strict: a new command before the journal's last one is a violation; after it, it is an extension", async () => {
  const before = workflow("w", async (ctx) => Promise.all([ctx.sleep(1), ctx.sleep(2)]));
  const inserted = workflow("w", async (ctx) => Promise.all([ctx.sleep(1), ctx.task(taskA), ctx.sleep(2)]));
  const appended = workflow("w", async (ctx) => Promise.all([ctx.sleep(1), ctx.sleep(2), ctx.task(taskA)]));
  const { strict, lenient } = await bothModes(before, inserted);
  expect(strict.stop).toMatchObject({ status: "determinism_violation", where: "Timer(1)" });
  expect(lenient.requested).toEqual(["Task(0)"]);
  // Also when the code awaits it, so that no later command is compared.
  const waiting = workflow("w", async (ctx) => {
    await ctx.task(taskA);
    return Promise.all([ctx.sleep(1), ctx.sleep(2)]);
  });
  expect((await bothModes(before, waiting)).strict.stop).toMatchObject({
    status: "determinism_violation",
    where: "Task(0)",
    message: violation(
      "the journal recorded no 'TaskScheduled' before index 1; the code now requests one at index 0 (at Task(0))",
    ),
  });
  const extended = await bothModes(before, appended);
  expect(extended.strict.stop).toBeUndefined();
  expect(extended.strict.requested).toEqual(["Task(0)"]);
});

test("strict: requesting a command after its completion is a violation; per type it gets the completion", async () => {
  const before = workflow("w", async (ctx) => {
    const [first, second] = [ctx.task(taskA, 1), ctx.task(taskA, 2)];
    return [await second, await first];
  });
  const after = workflow("w", async (ctx) => {
    const first = await ctx.task(taskA, 1);
    return [await ctx.task(taskA, 2), first];
  });
  const { strict, lenient } = await bothModes(before, after, (run) => run.finish("Task(1)", "Task(0)"));
  expect(strict.stop).toMatchObject({
    message: violation(
      "the journal recorded this command before its completion; the code now requests it after (at Task(1))",
    ),
  });
  expect(lenient.execution.outcome).toEqual({ status: "returned", value: ["a2", "a1"] });
});

test("replayJournal compares the end of the code with the recorded end", async () => {
  const ending = (value: unknown): Definition => workflow("w", async (ctx) => ctx.task(taskA).then(() => value));
  const run = await LiveRun.start(ending(1));
  await run.finish("Task(0)");
  const replay = (definition: Definition) =>
    replayJournal(workflowBody(definition), {
      identity: run.execution.identity,
      entries: run.entries,
      chain: run.chain,
      host: testHost([]),
      timers: systemTimers,
    });
  expect(await replay(ending(1))).toEqual({ status: "same", digest: `sha256:${run.chain}` });
  expect(await replay(ending(2))).toMatchObject({
    status: "mismatch",
    where: "entry 4",
    message: "the journal recorded another end of the run than the code now reaches.",
    expected: "completed 2",
    actual: "completed 1",
  });
  expect(await replay(workflow("w", async (ctx) => ctx.task(taskA).then(() => ctx.sleep(1))))).toMatchObject({
    status: "mismatch",
    message: "the journal recorded the end of the run; the code has not ended.",
  });
  expect(await replay(workflow("w", async (ctx) => ctx.task(taskB)))).toMatchObject({
    status: "mismatch",
    where: "Task(0)",
    message: violation("the journal recorded task 'TaskA'; the code now calls task 'TaskB' (at Task(0))"),
  });
});

test("a run that ended because its output is not data replays to the same end", async () => {
  const wrong = workflow("w", async (ctx) => {
    await ctx.task(taskA);
    return () => {};
  });
  const run = await LiveRun.start(wrong);
  await run.finish("Task(0)");
  expect(run.types.at(-1)).toBe("RunFailed");
  const verdict = await replayJournal(workflowBody(wrong), {
    identity: run.execution.identity,
    entries: run.entries,
    chain: run.chain,
    host: testHost([]),
    timers: systemTimers,
  });
  expect(verdict.status).toBe("same");
});
