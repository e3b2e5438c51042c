// What pages derive from answers of the API: texts of promises, lists that do not jump, verdicts.

import { expect, test } from "vitest";
import type { RunCounts, VerdictBody } from "../../src/contract/index.ts";
import { countEdits, diffLines } from "../../web/src/pages/approvals/line-diff.ts";
import { patchList } from "../../web/src/pages/approvals/open-list.ts";
import { commandOf, medianWait, outcomeOf, pathOf, textOfPromise } from "../../web/src/pages/approvals/promise-text.ts";
import { foldText, rowsOf, tilesOf } from "../../web/src/pages/proof/verdict-model.ts";
import { firstLineOf } from "../../web/src/pages/runs/first-line.ts";
import { exampleOf } from "../../web/src/pages/runs/schema-form.ts";
import { limitCommand, rateText, totalsOf, unclaimable } from "../../web/src/pages/queues/queue-figures.ts";

test("a promise is titled by what the code shows, else by its port", () => {
  expect(textOfPromise({ name: "approve", show: { title: "Refund", why: "damaged", cents: 1 } })).toEqual({
    title: "Refund",
    why: "damaged",
    rest: { cents: 1 },
  });
  expect(textOfPromise({ name: "approve", show: "Ship it?" })).toMatchObject({ title: "Ship it?", rest: undefined });
  expect(textOfPromise({ name: "approve", key: "ann", show: [1] })).toMatchObject({
    title: "approve · ann",
    rest: [1],
  });
  expect(textOfPromise({ name: "approve", key: "call-1", show: { tool: "refund", input: { cents: 7200 } } })).toEqual({
    title: "Call the tool refund",
    why: "",
    rest: { cents: 7200 },
  });
  const show = {
    cap: { usd: 2 },
    spent: { usd: 0.31, tokens: 9 },
    lost: { usd: 0.04 },
    reserve: { usd: 5, tokens: 9 },
  };
  expect(textOfPromise({ kind: "budget", name: "budget", key: "Operation(1)", show })).toEqual({
    title: "Raise the budget by $3.35",
    why: "Spent $0.31 and lost $0.04 of $2. Operation(1) reserves $5.",
    rest: undefined,
  });
  expect(textOfPromise({ name: "approve", show: "x".repeat(9_000_000) }).title.length).toBeLessThan(200);
  expect(textOfPromise({ name: "approve", show: JSON.parse('{"__proto__":{"title":"evil"}}') }).title).toBe("approve");
});

test("an answer has the same words in a shell, quoted for it", () => {
  const promise = { run: "o'1", name: "approve", key: "a b" };
  expect(commandOf(promise, { value: { ok: true } }, "because")).toBe(
    `reprise resolve 'o'\\''1' approve '{"ok":true}' --key 'a b' --reason because`,
  );
  expect(commandOf({ run: "o", name: "a" }, { reject: "no way" }, "")).toBe("reprise reject o a 'no way'");
  const budget = { run: "o", name: "budget", kind: "budget" };
  expect(commandOf(budget, { value: { usd: 4, calls: 1 } }, "worth it")).toBe(
    "reprise raise o --usd 4 --calls 1 --reason 'worth it'",
  );
  expect(commandOf(budget, { reject: "" }, "")).toBe("reprise decline o");
  expect(pathOf({ run: "a/b", name: "p", key: "k?" })).toBe("/v1/runs/a%2Fb/promises/p/k%3F");
});

test("a settled promise is called by what its value says", () => {
  expect(outcomeOf({ outcome: "resolved", value: { ok: false } }).word).toBe("Rejected");
  expect(outcomeOf({ outcome: "resolved", value: true }).word).toBe("Approved");
  expect(outcomeOf({ outcome: "resolved", value: 7 }).word).toBe("Answered");
  expect(outcomeOf({ outcome: "timed_out" }).word).toBe("Timed out");
  expect(medianWait([])).toBeUndefined();
});

test("rows stay in their place: an answered one is marked, a new one is counted", () => {
  const promise = (run: string) => ({
    run,
    definition: "d",
    kind: "promise" as const,
    name: "p",
    createdAt: "2026-11-18T00:00:00Z",
    cursor: run,
  });
  const { rows } = patchList(undefined, [promise("a"), promise("b")]);
  const patched = patchList(rows, [promise("c"), promise("b")]);
  expect(patched.rows.map(({ promise: { run }, gone }) => [run, gone])).toEqual([
    ["a", true],
    ["b", false],
  ]);
  expect(patched.fresh).toBe(1);
});

test("an edit is told line by line", () => {
  const lines = diffLines('{\n  "cents": 7200\n}', '{\n  "cents": 6400\n}');
  expect(lines.map(({ kind }) => kind)).toEqual(["same", "del", "add", "same"]);
  expect(countEdits(lines)).toBe(1);
  expect(countEdits(diffLines("a", "a"))).toBe(0);
});

const entry = (seq: number) => ({
  seq,
  type: "TaskScheduled",
  command: `Task(${seq})`,
  at: "2026-11-18T00:00:00Z",
  line: { tone: "quiet" as const, name: "ship", text: "" },
});
const verdict: VerdictBody = {
  run: "r",
  status: "different",
  entries: 11,
  agreed: 8,
  chain: { intact: true, head: "sha256:9f03c1d2aa" },
  gapFree: true,
  differences: [{ where: "Task(1)", message: "the code asks for notify" }],
  around: [7, 8, 9, 10].map(entry),
  tookMs: 7,
};

test("journal and code stand side by side up to the first difference", () => {
  expect(rowsOf(verdict).map(({ kind }) => kind)).toEqual(["same", "same", "different", "unreached"]);
  expect(foldText(verdict)).toBe("entries 1 to 6 agree");
  expect(tilesOf(verdict, false).map(({ status }) => status)).toEqual([
    "completed",
    "completed",
    "failed",
    "completed",
  ]);
  const more = rowsOf({ ...verdict, entries: 8, around: [7, 8].map(entry) });
  expect(more.map(({ kind }) => kind)).toEqual(["same", "same", "different"]);
});

test("limits read as text and as the command that sets them", () => {
  const limits = { concurrency: 2, rate: { limit: 100, per: 60_000 }, perKey: { concurrency: 1 } };
  expect(rateText(limits)).toBe("100 per min, per key 1 at once");
  expect(limitCommand("pay ments", limits)).toBe(
    "reprise queue limit 'pay ments' --concurrency 2 --rate 100/60000ms --key-concurrency 1",
  );
  expect(limitCommand("q", {})).toBe("reprise queue limit q --none");
});

test("figures add up live workers only, and the oldest work of queues that are not paused", () => {
  const worker = (alive: boolean) => ({
    worker: 1,
    name: "w",
    startedAt: "",
    alive,
    draining: false,
    leaseUntil: "",
    concurrency: 8,
    running: 2,
    stepsPerSecond: 1.5,
    definitions: [],
  });
  const queue = (name: string, paused: boolean, age: number) => ({
    name,
    limits: {},
    paused,
    ready: 1,
    leased: 0,
    delayed: 0,
    oldestReadyAt: new Date(100_000 - age).toISOString(),
  });
  const totals = totalsOf([queue("a", false, 5), queue("b", true, 50)], [worker(true), worker(false)], 100_000);
  expect(totals).toEqual({
    alive: 1,
    workers: 2,
    slots: 8,
    used: 2,
    stepsPerSecond: 1.5,
    lost: 1,
    oldest: { queue: "a", ms: 5 },
  });
  const reason = (name: string) => ({ reason: name, text: "", next: [], facts: {} });
  const pending = ["no_worker", "rate_limit"].map((name) => ({
    kind: "task" as const,
    name,
    count: 1,
    reasons: [reason(name)],
  }));
  expect(unclaimable(pending).map(({ name }) => name)).toEqual(["no_worker"]);
});

test("the form of a start begins with the number that is closest to 0", () => {
  const safe = { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
  expect(exampleOf(safe)).toBe(0);
  expect(exampleOf({ type: "number", minimum: 3 })).toBe(3);
  expect(exampleOf({ type: "number", maximum: -2 })).toBe(-2);
  expect(exampleOf({ type: "object", properties: { order: safe }, required: ["order"] })).toEqual({ order: 0 });
});

test("the first line of the runs says what is wrong first, and else what happens", () => {
  const none = {
    queued: 0,
    running: 0,
    waiting: 0,
    paused: 0,
    blocked: 0,
    determinism_violation: 0,
    expected: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    continued: 0,
  };
  const line = (
    counts: Partial<RunCounts["counts"]>,
    alive: number | undefined,
    atLeast: RunCounts["atLeast"] = [],
  ) => {
    const { lead, text, command } = firstLineOf({ counts: { ...none, ...counts }, upTo: 1000, atLeast }, alive);
    return [lead, text, command];
  };
  expect(line({ waiting: 2, blocked: 1 }, 0)).toEqual([
    "No worker is alive.",
    "2 runs continue when one starts; nothing is lost.",
    "reprise worker <file>",
  ]);
  expect(line({ waiting: 2, blocked: 1 }, 1)[0]).toBe("1 run is stopped.");
  expect(line({ running: 1000, waiting: 3, failed: 2 }, undefined, ["running"])).toEqual([
    "1,000+ in progress.",
    "3 wait, 2 failed.",
    "reprise top",
  ]);
  expect(line({ waiting: 1, completed: 9 }, 1)).toEqual(["1 run waits.", "", "reprise list --status waiting"]);
  expect(line({ failed: 2 }, 1)).toEqual(["Nothing runs.", "2 failed.", "reprise list --status failed"]);
  expect(line({ completed: 9 }, 0)).toEqual(["Nothing runs.", "", undefined]);
});
