// The decision of `explain`, over facts: each reason with its sentence and the command that helps.

import { describe, expect, test } from "vitest";
import { encode } from "../base/index.ts";
import {
  nodeRoute,
  type OpenItem,
  type QueueUse,
  type RunRecord,
  type RunWork,
  type ScheduleRecord,
  type WorkerInfo,
} from "../kernel/index.ts";
import { reasonsOf } from "./explain.ts";
import { scheduleFacts } from "./explain-schedule.ts";
import { withAdvice } from "./sentences.ts";
import { slotText, type RunFacts } from "./facts.ts";
import type { WaitReason } from "./reasons.ts";
import { stepsOf } from "./step-fold.ts";

const NOW = 1_000_000;

const RECORD: RunRecord = {
  run: 1,
  id: "order-7",
  generation: 0,
  definition: "order",
  kind: "workflow",
  version: 2,
  status: "waiting",
  parent: undefined,
  parentCommand: undefined,
  priority: 0,
  tags: [],
  head: 3,
  chain: "",
  arrivals: 0,
  read: 0,
  unread: 0,
  lostTurns: 0,
  createdAt: 0,
  endedAt: undefined,
  errorCode: undefined,
  runtime: "{}",
  evidence: undefined,
};

const WORK: RunWork = {
  turn: { due: "no", worker: undefined, since: undefined, takeovers: 0 },
  parent: undefined,
  items: [],
  itemCount: 0,
  promises: [],
  budgetRequests: [],
  children: [],
  messages: [],
  nodes: [],
};

function worker(number: number, until: number, profile: object = {}, activity?: object): WorkerInfo {
  const claims = { definitions: [], items: [], concurrency: 8, leaseMs: 10_000, labels: [], ...profile };
  return {
    worker: number,
    name: `shop-${number}`,
    startedAt: 0,
    until,
    profile: JSON.stringify(claims),
    activity: activity && JSON.stringify({ overMs: 1_000, ...activity }),
  };
}

const able = worker(4, NOW + 5_000, { definitions: [{ name: "order", version: 2 }], items: ["charge"] });

function item(given: Partial<OpenItem>): OpenItem {
  const none = { worker: undefined, since: undefined, queue: undefined, key: undefined, failures: undefined };
  const task = { item: "Task(0)", kind: "task", name: "charge", state: "ready" } as const;
  return { ...none, ...task, attempt: 0, availableAt: NOW, takeovers: 0, ...given };
}

interface Given extends Partial<Omit<RunFacts, "record" | "work">> {
  readonly record?: Partial<RunRecord>;
  readonly work?: Partial<RunWork>;
}

function explained({ record, work, ...facts }: Given): readonly WaitReason[] {
  const items = work?.items ?? [];
  return reasonsOf({
    now: NOW,
    record: { ...RECORD, ...record },
    work: { ...WORK, itemCount: items.length, ...work },
    workers: [],
    committedAt: undefined,
    queues: new Map(),
    open: [],
    isWhole: true,
    retries: [],
    nodes: new Map(),
    disk: undefined,
    joins: [],
    children: new Map(),
    ...facts,
  });
}

/** `reason: text → commands` */
function lines(given: Given): readonly string[] {
  return explained(given).map(
    ({ reason, text, next }) => `${reason}: ${text}${next.map((one) => ` → ${one}`).join("")}`,
  );
}

const due = { turn: { ...WORK.turn, due: "yes" } } as const;

describe("a run whose turn is due", () => {
  test("names the workers that live and what each lacks, if none can claim it", () => {
    const workers = [
      worker(1, NOW + 1, { definitions: [{ name: "order", version: 1 }] }),
      worker(2, NOW + 1),
      worker(3, NOW, { definitions: [{ name: "order", version: 2 }] }),
    ];
    expect(lines({ work: due, workers })).toEqual([
      "no_worker: No live worker can claim the run, which needs order version 2: shop-1 (1) has order version 1, shop-2 (2) does not have it. → reprise worker <file>",
    ]);
  });

  test("says that no worker is live", () => {
    expect(lines({ work: due, workers: [worker(1, NOW)] })).toEqual([
      "no_worker: No worker is live; the run needs one with order version 2. → reprise worker <file>",
    ]);
  });

  test("names the label that a worker with the definition lacks", () => {
    const unclaimed = [{ name: "order", version: 2, label: "gpu" }];
    expect(lines({ work: due, workers: [worker(1, NOW + 1, { unclaimed })] })).toEqual([
      "no_worker: No live worker can claim the run: shop-1 (1) lacks the label gpu. → reprise worker <file> --labels gpu",
    ]);
  });

  test("names the workers that can claim it, and how much they run", () => {
    const definitions = [{ name: "order", version: 2 }];
    const busy = worker(5, NOW + 1, { definitions }, { running: 8 });
    const leaving = worker(6, NOW + 1, { definitions }, { running: 1, isDraining: true });
    expect(lines({ work: due, workers: [able, busy, leaving], record: { arrivals: 3, read: 2 } })).toEqual([
      "unclaimed: The run is due, with 1 unread message, and no worker has claimed it yet; shop-4 (4), shop-5 (5) ran 8 of 8 steps at its last heartbeat, shop-6 (6) is shutting down claim such work. → reprise top",
    ]);
  });

  test("makes no claim about a worker that does not publish what it claims", () => {
    const silent = { ...worker(1, NOW + 1), profile: undefined };
    expect(explained({ work: due, workers: [silent] })).toMatchObject([
      { reason: "unclaimed", text: expect.stringContaining("a live worker does not publish what it claims") },
    ]);
  });

  test("is a suspect after workers died with it", () => {
    const turn = { ...WORK.turn, due: "suspect", takeovers: 6 } as const;
    expect(lines({ work: { turn }, workers: [able] })).toEqual([
      "suspect: The run was taken over 6 times in a row without a commit, so workers claim it alone; after 8 takeovers the engine stops the run. → reprise pause order-7",
    ]);
  });
});

describe("a run whose turn a worker holds", () => {
  const held = { turn: { ...WORK.turn, worker: 4, since: NOW - 3_000 } };

  test("names the worker, since when it executes the run, and its last commit", () => {
    expect(lines({ work: held, workers: [able], committedAt: NOW - 41_000 })).toEqual([
      "running: Worker shop-4 (4) has executed the run for 3 s, last commit 41 s ago; its lease is valid for 5 s.",
    ]);
  });

  test("names the worker that takes it over once the lease has expired", () => {
    const workers = [worker(4, NOW - 12_000), worker(5, NOW + 1)];
    expect(lines({ work: held, workers })).toEqual([
      "lease_expired: The lease of worker shop-4 (4), which held the run, expired 12 s ago; worker shop-5 (5) takes it over with its next heartbeat.",
    ]);
    expect(lines({ work: held, workers: workers.slice(0, 1) })).toEqual([
      "lease_expired: The lease of worker shop-4 (4), which held the run, expired 12 s ago; no live worker can take it over. → reprise worker <file>",
    ]);
  });

  test("says that its worker is not registered", () => {
    expect(explained({ work: held, workers: [worker(5, NOW + 1)] })).toMatchObject([
      { reason: "lease_expired", text: expect.stringContaining("Worker 4, which holds the run, is not registered;") },
    ]);
  });

  test("says when the next attempt of an operation starts, and why the last one failed", () => {
    const error = new Error("declined");
    const retry = {
      kind: "operation",
      command: "Operation(1)",
      name: "pay",
      attempt: 3,
      until: NOW + 2_000,
      error,
    } as const;
    expect(lines({ work: held, workers: [able], retries: [retry, { ...retry, until: NOW }] }).slice(1)).toEqual([
      "retry: Attempt 3 of operation pay starts in 2 s, at 1970-01-01T00:16:42.000Z; attempt 2 failed: Error: declined.",
    ]);
  });
});

describe("a task in a queue", () => {
  const use: QueueUse = {
    limits: { concurrency: 2, rate: { limit: 100, perMs: 60_000 }, perKey: { concurrency: 1 } },
    paused: false,
    pausedAt: undefined,
    whole: { held: 0, holders: [], admitted: 0, opensAt: undefined },
    ofKey: { held: 0, holders: [], admitted: undefined, opensAt: undefined },
  };
  const queued = item({ queue: "mail", key: "acme" });
  const inQueue = (given: Partial<QueueUse>, state: OpenItem["state"] = "ready"): readonly string[] =>
    lines({
      work: { items: [{ ...queued, state }] },
      workers: [able],
      queues: new Map([[slotText("task", "mail", "acme"), { ...use, ...given }]]),
    });

  test("waits while the queue is paused", () => {
    expect(inQueue({ paused: true, pausedAt: NOW - 60_000 })).toEqual([
      "queue_paused: Queue mail has been paused for 1 m; task charge waits in it. → reprise queue resume mail",
    ]);
  });

  test("names the runs that hold the slots of a full queue, and the command that adds one", () => {
    const holders = [{ run: 3, id: "order-3", item: "Task(0)" }];
    expect(inQueue({ whole: { ...use.whole, held: 2, holders } })).toEqual([
      "concurrency_limit: Queue mail runs at most 2 tasks at once, and 2 hold its slots: Task(0) of order-3 and 1 more; task charge waits for a free one." +
        " → reprise show order-3 → reprise queue limit mail --concurrency 3 --rate 100/1m --key-concurrency 1",
    ]);
  });

  test("names the key whose slots are taken, and suggests to show their run unless it is the same run", () => {
    const holders = [{ run: 3, id: "order-3", item: "Task(0)" }];
    expect(inQueue({ ofKey: { ...use.ofKey!, held: 1, holders } }, "parked")).toEqual([
      "concurrency_limit: Queue mail runs at most 1 task at once for the key acme, and 1 holds its slot: Task(0) of order-3; task charge waits for a free one." +
        " → reprise show order-3 → reprise queue limit mail --concurrency 2 --rate 100/1m --key-concurrency 2",
    ]);
    const own = [{ run: 7, id: "order-7", item: "Task(0)" }];
    expect(inQueue({ ofKey: { ...use.ofKey!, held: 1, holders: own } }, "parked")[0]).not.toContain("reprise show");
  });

  test("says when the rate opens", () => {
    expect(inQueue({ whole: { ...use.whole, admitted: 100, opensAt: NOW + 12_000 } })).toEqual([
      "rate_limit: Queue mail starts at most 100 attempts of tasks per 1 m, and has started that many; the next may start in 12 s, at 1970-01-01T00:16:52.000Z; task charge waits." +
        " → reprise queue limit mail --concurrency 2 --rate 200/1m --key-concurrency 1",
    ]);
  });

  test("has every reason that holds: a paused queue whose task no live worker has", () => {
    const queues = new Map([[slotText("task", "mail", "acme"), { ...use, paused: true }]]);
    const reasons = explained({ work: { items: [queued] }, workers: [worker(1, NOW + 1)], queues });
    expect(reasons.map(({ reason }) => reason)).toEqual(["queue_paused", "no_worker"]);
  });

  test("is counted with the others that wait for the same", () => {
    const items = [0, 1, 2].map((n) => item({ item: `Task(${n})` }));
    expect(lines({ work: { items, itemCount: 900 }, workers: [worker(1, NOW + 1)] })).toEqual([
      "no_worker: No live worker can claim 3+ tasks charge: shop-1 (1) does not have it. → reprise worker <file>",
    ]);
  });
});

describe("items of a run", () => {
  test("that a worker runs name it; one whose lease expired is taken over", () => {
    const items = [
      item({ state: "leased", worker: 4, since: NOW - 9_000 }),
      item({ item: "Task(1)", state: "leased", worker: 9 }),
    ];
    expect(lines({ work: { items }, workers: [able] })).toEqual([
      "running: Worker shop-4 (4) has executed task charge for 9 s; its lease is valid for 5 s.",
      "lease_expired: Worker 9, which holds task charge, is not registered; worker shop-4 (4) takes it over with its next heartbeat.",
    ]);
  });

  test("that back off say until when, and after which error", () => {
    const failures = encode([new Error("first"), new Error("declined")]);
    const items = [item({ state: "delayed", attempt: 2, availableAt: NOW + 30_000, failures })];
    expect(lines({ work: { items }, workers: [able] })).toEqual([
      "retry: Attempt 3 of task charge starts in 30 s, at 1970-01-01T00:17:10.000Z; attempt 2 failed: Error: declined.",
    ]);
  });

  test("include the start of a run that is delayed, or waits for a slot of its queue", () => {
    const start = item({ item: "Start", kind: "start", name: "order@2", state: "delayed", availableAt: NOW + 60_000 });
    const turn = { ...WORK.turn, due: "not_started" } as const;
    expect(lines({ record: { status: "queued" }, work: { turn, items: [start] } })).toEqual([
      "delay: The run starts in 1 m, at 1970-01-01T00:17:40.000Z.",
    ]);
    const waits = { ...start, state: "ready", queue: "mail" } as const;
    const whole = {
      held: 1,
      holders: [{ run: 3, id: "order-3", item: "Start" }],
      admitted: undefined,
      opensAt: undefined,
    };
    const use: QueueUse = { limits: { concurrency: 1 }, paused: false, pausedAt: undefined, whole, ofKey: undefined };
    const queues = new Map([[slotText("start", "mail", undefined), use]]);
    expect(lines({ record: { status: "queued" }, work: { turn, items: [waits] }, workers: [able], queues })).toEqual([
      "concurrency_limit: Queue mail runs at most 1 run at once, and 1 holds its slot: order-3; the run waits for a free one." +
        " → reprise show order-3 → reprise queue limit mail --concurrency 2",
    ]);
  });

  test("that are overdue need a worker; a deadline is a reason only when it has passed", () => {
    const timer = item({ item: "Timer(0)", kind: "timer", name: "TimerFired", state: "delayed" });
    const deadline = item({ item: "Deadline", kind: "timer", name: "DeadlineExceeded", state: "delayed" });
    const [late, early] = [NOW - 5_000, NOW + 5_000];
    const at = (timerAt: number, deadlineAt: number): readonly string[] =>
      explained({
        work: {
          items: [
            { ...deadline, availableAt: deadlineAt },
            { ...timer, availableAt: timerAt },
          ],
        },
      }).map(({ text }) => text);
    expect(at(early, early)).toEqual(["It waits for a timer, which fires in 5 s, at 1970-01-01T00:16:45.000Z."]);
    expect(at(late, late)).toEqual([
      "Its deadline passed 5 s ago, and no worker has processed that.",
      "It waits for a timer, which is overdue by 5 s.",
      "No worker is live; the run needs one with order version 2.",
    ]);
  });
});

describe("what the code waits for", () => {
  const since = new Date(NOW - 180_000);
  const entry = (seq: number, type: string, command: string, data: object) =>
    ({ seq, type, command, data, at: since }) as unknown as Parameters<typeof stepsOf>[0] extends Iterable<infer E>
      ? E
      : never;
  const promise = entry(2, "PromiseCreated", "Promise(0)", {
    promiseId: "it's ok",
    show: { cents: 5 },
    timeout: 240_000,
  });
  const receive = entry(3, "PromiseCreated", "Promise(1)", { promiseId: "a | b", receives: ["a", "b"] });

  test("is a promise with what it shows, or a signal, since when; and the command that answers", () => {
    expect(lines({ open: stepsOf([promise, receive]) })).toEqual([
      "promise: It has waited 3 m for promise it's ok, times out in 1 m, showing { cents: 5 }. → reprise resolve order-7 'it'\\''s ok' '<value as JSON>'",
      "signal: It has waited 3 m for signal a or b. → reprise signal order-7 a '<value as JSON>' → reprise signal order-7 b '<value as JSON>'",
    ]);
  });

  test("is a timer by the id that the code gave it", () => {
    const started = entry(2, "TimerStarted", "Timer(0)", { timerId: "renewal", ms: 60_000 });
    const named = { item: "Timer(0)", kind: "timer", name: "TimerFired", state: "delayed" } as const;
    const timer = item({ ...named, availableAt: NOW + 60_000 });
    const [reason] = explained({ open: stepsOf([started]), work: { items: [timer] } });
    expect(reason).toMatchObject({ reason: "timer", name: "renewal" });
    expect(reason?.text).toMatch(/^It waits for timer renewal, which fires in 1 m/);
  });

  test("suggests no answer while a message is unread: it may be the answer", () => {
    const [reason] = explained({ open: stepsOf([promise]), record: { arrivals: 2, read: 1 } });
    expect(reason?.next).toEqual([]);
  });

  test("is a promise with its timer, as one reason; the key comes from the store", () => {
    const items = [
      item({ item: "Promise(0)", kind: "timer", name: "PromiseTimedOut", state: "delayed", availableAt: NOW + 1 }),
    ];
    const promises = [{ command: "Promise(0)", name: "it's ok", key: "eu", seq: 2, at: NOW }];
    const reasons = explained({ open: stepsOf([promise]), work: { items, promises } });
    expect(reasons).toMatchObject([{ reason: "promise", key: "eu", next: [expect.stringMatching(/ --key eu$/)] }]);
  });

  test("is a child, and why the child does not move, with the command that helps the child", () => {
    const open = stepsOf([
      entry(2, "ChildWorkflowInitiated", "ChildWorkflow(0)", { childExecutionId: "sub-1", childExecutionName: "sub" }),
    ]);
    const waitsFor = explained({ record: { id: "sub-1" }, work: due });
    expect(lines({ open, children: new Map([["sub-1", { status: "queued", waitsFor }]]) })).toEqual([
      "child: It has waited 3 m for child sub, run sub-1, queued: no worker is live; the run needs one with order version 2. → reprise worker <file>",
    ]);
    expect(lines({ open, children: new Map([["sub-1", { status: undefined, waitsFor: [] }]]) })).toEqual([
      "child: It has waited 3 m for child sub, run sub-1, which the store does not have. → reprise show sub-1",
    ]);
  });

  test("is an update if nothing is open; without the whole journal it is not known", () => {
    expect(lines({})).toEqual([
      "update: No task, timer, promise, signal or child of it is open: only an update or a cancel continues it.",
    ]);
    expect(lines({ isWhole: false, record: { head: 5_000 } })).toEqual([
      "unknown: What it waits for is not known: its rows list nothing, and only the last entries of its 5000 were read. → reprise show order-7",
    ]);
  });

  test("of a flow is the inputs of a node, and its nodes in the queue", () => {
    const items = [item({ item: "sum", kind: "node", name: nodeRoute("order", 2) })];
    const nodes = [{ node: "total", required: 3, completed: 1, arrived: ["tax"] }];
    expect(lines({ record: { kind: "flow" }, work: { items, nodes }, workers: [worker(1, NOW + 1)] })).toEqual([
      "no_worker: No live worker can claim node sum, which needs order version 2: shop-1 (1) does not have it. → reprise worker <file>",
      "inputs: Node total waits for 2 more inputs; 1 of 3 arrived, from tax.",
    ]);
  });

  test("of a graph is a join, and the waits of its nodes by name", () => {
    const open = stepsOf([entry(2, "PromiseCreated", "Node(5.0)#0/Promise(0)", { promiseId: "approval" })]);
    const nodes = new Map([["Node(5.0)", "review"]]);
    expect(lines({ record: { kind: "graph" }, open, nodes, joins: [{ node: "write", arrived: ["read"] }] })).toEqual([
      "promise: Node review 5.0 has waited 3 m for promise approval. → reprise resolve order-7 approval '<value as JSON>'",
      "join: Node write waits for more branches; read arrived.",
    ]);
  });
});

describe("a schedule", () => {
  const schedule = {
    name: "nightly",
    definition: "order",
    paused: false,
    nextAt: NOW + 60_000,
    dueAt: NOW + 60_000,
    lastRun: undefined,
    lastStatus: undefined,
    queued: [],
  } as unknown as ScheduleRecord;
  const line = (given: Partial<ScheduleRecord>, workers: readonly WorkerInfo[] = []): string => {
    const { text, next } = withAdvice(scheduleFacts({ ...schedule, ...given }, workers, NOW), {
      id: "",
      now: NOW,
      hasUnread: false,
    });
    return [text, ...next].join(" → ");
  };

  test("says when it starts its next run, or that it is paused, over or waits for its last run", () => {
    expect(line({})).toBe("Schedule nightly starts its next run in 1 m, at 1970-01-01T00:17:40.000Z.");
    expect(line({ paused: true })).toBe("Schedule nightly is paused. → reprise schedule resume nightly");
    expect(line({ nextAt: undefined, dueAt: undefined })).toBe("The pattern of schedule nightly has no more times.");
    expect(line({ queued: [1, 2], lastRun: "nightly/1", lastStatus: "running" })).toBe(
      "2 planned times of schedule nightly wait for the end of run nightly/1. → reprise show nightly/1",
    );
  });

  test("that is overdue names the live workers, and whether one has the definition", () => {
    const overdue = { dueAt: NOW - 3_000 };
    expect(line(overdue)).toBe(
      "Schedule nightly was due 3 s ago, and no worker has started its run: no worker is live. → reprise worker <file>",
    );
    expect(line(overdue, [worker(1, NOW + 1)])).toBe(
      "Schedule nightly was due 3 s ago, and no worker has started its run: shop-1 (1) does not have it. → reprise worker <file>",
    );
    expect(line(overdue, [able])).toBe(
      "Schedule nightly was due 3 s ago, and no worker has started its run: shop-4 (4) has order.",
    );
  });
});

test("a full disk comes first; a disk with space is no reason", () => {
  const disk = { folder: "/data", freeBytes: 4_096 };
  expect(lines({ work: due, workers: [able], disk })[0]).toBe(
    "disk_full: The disk of the store is full: 4096 bytes are free in /data, so no worker can commit. → df -h /data",
  );
  expect(lines({ work: due, workers: [able], disk: { ...disk, freeBytes: 65_536 } })).toHaveLength(1);
});

describe("a stopped run", () => {
  test("names the evidence, and only the steps that still run", () => {
    const evidence = encode({
      code: "STALLED",
      message: "it awaits a promise of another library",
      where: "order.ts:7",
    });
    const items = [item({ state: "leased", worker: 4 }), item({ item: "Task(1)" })];
    const reasons = explained({ record: { status: "blocked", evidence }, work: { items }, workers: [able] });
    expect(reasons).toMatchObject([
      { reason: "stopped", code: "STALLED", where: "order.ts:7", next: ["reprise resume order-7"] },
      { reason: "running" },
    ]);
    expect(lines({ record: { status: "paused" } })).toEqual([
      "paused: The run is paused: no new step starts, and messages are accepted. → reprise resume order-7",
    ]);
  });

  test("that is only expected names its definition", () => {
    expect(lines({ record: { status: "expected" } })).toEqual([
      "expected: Messages have arrived for it, but no call has started the run of order. → reprise run <file> order '<input as JSON>' --id order-7",
    ]);
  });
});

test("messages of an ended run that are not delivered are named, with the failures and the missing handler", () => {
  const message = { destination: "crm", sentAt: NOW - 60_000, availableAt: NOW + 4_000, attempt: 3, worker: undefined };
  const messages = [message, { ...message, attempt: 0 }];
  expect(lines({ record: { status: "completed" }, work: { messages }, workers: [able] })).toEqual([
    "outbox: 2 messages to crm are not delivered, the oldest for 1 m; 3 deliveries failed; the next delivery starts in 4 s, at 1970-01-01T00:16:44.000Z; no live worker delivers to crm. → reprise worker <file>",
  ]);
  const handled = worker(4, NOW + 1, { destinations: ["crm"] });
  expect(explained({ record: { status: "completed" }, work: { messages }, workers: [handled] })).toMatchObject([
    { delivered: true, next: [] },
  ]);
  expect(lines({ record: { status: "completed" } })).toEqual([]);
});
