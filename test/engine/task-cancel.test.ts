// One task can be canceled: the journal records it, its item leaves the queue, and a running attempt is aborted.

import { expect, test } from "vitest";
import {
  CancelledError,
  createEngine,
  END,
  FatalError,
  graph,
  last,
  promise,
  queue,
  START,
  task,
  workflow,
} from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, rejection, within, type Gate } from "./world.ts";

const typesOf = async (run: { journal(): AsyncIterable<{ type: string }> }): Promise<string[]> =>
  (await collect(run.journal())).map(({ type }) => type);

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    (value) => `completed ${String(value)}`,
    (error: Error) => `${error.name}: ${error.message}`,
  );

/** A task that waits at a gate and notes how its signal ends. */
function gatedTask(gate: Gate<string>, signals: AbortSignal[]) {
  return task("gated", (ctx) => {
    signals.push(ctx.abortSignal);
    return gate.wait();
  });
}

test("a running task that the code cancels is aborted, its result is ignored, and the code receives CancelledError", async () => {
  const gate = createGate<string>();
  const signals: AbortSignal[] = [];
  const gated = gatedTask(gate, signals);
  const picky = workflow("picky", { ports: { stop: promise<string>(), end: promise() } }, async (ctx) => {
    const slow = ctx.task(gated);
    slow.cancel(await ctx.promise("stop"));
    const message = await messageOf(slow);
    await ctx.promise("end");
    return message;
  });
  await using engine = await createTestEngine({ definitions: [picky, gated] });
  const run = await engine.start(picky);
  await gate.reached;
  await run.resolve("stop", "too slow");
  await engine.clock.advance(0);
  expect(signals.map(({ aborted, reason }) => [aborted, reason])).toEqual([[true, expect.any(CancelledError)]]);
  expect((await run.info()).status).toBe("waiting");
  gate.open("late");
  await engine.clock.advance(0);
  await run.resolve("end");
  expect(await run.result()).toBe("CancelledError: Task gated was cancelled: too slow");
  expect(await typesOf(run)).toEqual([
    "RunStarted",
    "TaskScheduled",
    "PromiseCreated",
    "PromiseResolved",
    "TaskCancelled",
    "PromiseCreated",
    "PromiseResolved",
    "RunCompleted",
  ]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a task that no worker has started leaves its queue when it is canceled, and never runs", async () => {
  const gate = createGate();
  const ran: string[] = [];
  const narrow = queue("narrow", { concurrency: 1 });
  const work = task("work", { queue: narrow }, async (_ctx, name: string) => {
    ran.push(name);
    await gate.wait();
    return name;
  });
  const three = workflow("three", { ports: { stop: promise() } }, async (ctx) => {
    const [first, second, third] = [ctx.task(work, "first"), ctx.task(work, "second"), ctx.task(work, "third")];
    await ctx.promise("stop");
    second.cancel();
    return Promise.all([messageOf(first), messageOf(second), messageOf(third)]);
  });
  await using engine = await createTestEngine({ definitions: [three, work] });
  const run = await engine.start(three);
  await gate.reached;
  expect(await engine.findQueue(narrow)).toMatchObject({ leased: 1, ready: 2 });
  await run.resolve("stop");
  await engine.clock.advance(0);
  expect(await engine.findQueue(narrow)).toMatchObject({ leased: 1, ready: 1 });
  gate.open();
  expect(await run.result()).toEqual([
    "completed first",
    "CancelledError: Task work was cancelled.",
    "completed third",
  ]);
  expect(ran).toEqual(["first", "third"]);
});

test("the slot that a canceled task occupies in its queue is free for the next one", async () => {
  const gate = createGate();
  const narrow = queue("narrow", { concurrency: 1 });
  const work = task("work", { queue: narrow }, async (_ctx, name: string) => {
    if (name === "stuck") await gate.wait();
    return name;
  });
  const two = workflow("two", { ports: { stop: promise() } }, async (ctx) => {
    const stuck = ctx.task(work, "stuck");
    const next = ctx.task(work, "next");
    await ctx.promise("stop");
    stuck.cancel();
    return next;
  });
  await using engine = await createTestEngine({ definitions: [two, work] });
  const run = await engine.start(two);
  await gate.reached;
  await run.resolve("stop");
  expect(await run.result()).toBe("next");
});

test("a task that waits for its next attempt is not attempted again after its cancel", async () => {
  let attempts = 0;
  const flaky = task("flaky", { retry: { maxAttempts: 9, baseDelay: "1 h", maxDelay: "1 h" } }, () => {
    attempts += 1;
    throw new Error("down");
  });
  const once = workflow("once", async (ctx) => {
    const trying = ctx.task(flaky);
    await ctx.sleep("30 minutes");
    trying.cancel("it is down");
    await ctx.sleep("1 day");
    return messageOf(trying);
  });
  await using engine = await createTestEngine({ definitions: [once, flaky] });
  const run = await engine.start(once);
  await engine.clock.advance("2 days");
  expect(await run.result()).toBe("CancelledError: Task flaky was cancelled: it is down");
  expect(attempts).toBe(1);
});

test("a task that is canceled in the turn that requests it never starts", async () => {
  let calls = 0;
  const work = task("work", () => (calls += 1));
  const hasty = workflow("hasty", async (ctx) => {
    const started = ctx.task(work);
    started.cancel();
    started.cancel("twice");
    const message = await messageOf(started);
    await ctx.sleep("1 minute");
    return message;
  });
  await using engine = await createTestEngine({ definitions: [hasty, work] });
  const run = await engine.start(hasty);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe("CancelledError: Task work was cancelled.");
  expect(calls).toBe(0);
  expect((await typesOf(run)).filter((type) => type === "TaskCancelled")).toHaveLength(1);
});

test("canceling a task that has ended has no effect", async () => {
  const work = task("work", () => "done");
  const late = workflow("late", async (ctx) => {
    const started = ctx.task(work);
    await started;
    started.cancel();
    return messageOf(started);
  });
  await using engine = await createTestEngine({ definitions: [late, work] });
  const run = await engine.start(late);
  expect(await run.result()).toBe("completed done");
  expect(await typesOf(run)).not.toContain("TaskCancelled");
});

test("a workflow that cancels the slower of two tasks has the same output wherever it is killed", async () => {
  const quick = task("quick", () => "quick");
  const slow = task("slow", { retry: { maxAttempts: 99, baseDelay: "1 h" } }, () => {
    throw new Error("not yet");
  });
  const fastest = workflow("fastest", async (ctx) => {
    const [one, two] = [ctx.task(slow), ctx.task(quick)];
    const winner = await Promise.race([one, two]);
    one.cancel(`${winner} was first`);
    const loser = await messageOf(one);
    await ctx.sleep("1 minute");
    return [winner, loser];
  });
  const { output, crashes } = await crashEverywhere(fastest, undefined, { definitions: [quick, slow] });
  expect(output).toEqual(["quick", "CancelledError: Task slow was cancelled: quick was first"]);
  expect(crashes).toBeGreaterThan(6);
});

test("a task that runs on another worker is aborted when the code cancels it", async () => {
  using folder = createFolder();
  const reached = createGate();
  const aborted = createGate<unknown>();
  const work = task("work", (ctx) => {
    ctx.abortSignal.addEventListener("abort", () => aborted.open(ctx.abortSignal.reason));
    void reached.wait();
    return new Promise<void>(() => {});
  });
  const stand = task("work", () => new Promise<void>(() => {}));
  const busy = workflow("busy", { ports: { stop: promise() } }, async (ctx) => {
    // The only task slot of the first process is taken, so the other process claims the next task.
    const here = ctx.task(stand);
    const elsewhere = ctx.task(stand);
    await ctx.promise("stop");
    elsewhere.cancel("enough");
    const message = await messageOf(elsewhere);
    here.cancel();
    return message;
  });
  const store = `sqlite:${folder.file("shared.db")}`;
  await using engine = await createEngine({ store, definitions: [busy, stand], worker: { concurrency: 1 } });
  await using _other = await createEngine({ store, definitions: [work] });
  const run = await engine.start(busy);
  await within(10_000, reached.reached);
  await run.resolve("stop");
  expect(await within(10_000, run.result())).toBe("CancelledError: Task work was cancelled: enough");
  expect(await within(10_000, aborted.opened)).toBeInstanceOf(CancelledError);
});

test("a shielded task can be canceled, also while the run is being canceled; a task that the run's cancel ended cannot", async () => {
  const gate = createGate<string>();
  const signals: AbortSignal[] = [];
  const gated = gatedTask(gate, signals);
  const cleanup = workflow("cleanup", { ports: { stop: promise() } }, async (ctx) => {
    const outside = ctx.task(gated);
    try {
      await ctx.promise("stop");
    } finally {
      outside.cancel("too late");
      await ctx.shield(async () => {
        const inside = ctx.task(gated);
        await ctx.sleep("1 minute");
        inside.cancel("long enough");
        await ctx.run("note", await messageOf(inside), (_op, text) => text);
      });
    }
  });
  await using engine = await createTestEngine({ definitions: [cleanup, gated] });
  const run = await engine.start(cleanup);
  await gate.reached;
  await run.cancel();
  await engine.clock.advance("1 minute");
  await rejection(run.result());
  const entries = await collect(run.journal());
  expect(entries.filter(({ type }) => type === "TaskCancelled").map(({ command }) => command)).toEqual(["Task(1)"]);
  expect(entries.find(({ type }) => type === "OperationCompleted")?.data).toMatchObject({
    result: "CancelledError: Task gated was cancelled: long enough",
  });
  expect((await run.info()).status).toBe("cancelled");
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry of the run queues a task again whose cancel followed the failure", async () => {
  let works = false;
  const gate = createGate<string>();
  const signals: AbortSignal[] = [];
  const gated = gatedTask(gate, signals);
  const shaky = task("shaky", () => {
    if (!works) throw new FatalError("down");
  });
  const pair = workflow("pair", async (ctx) => {
    const long = ctx.task(gated);
    try {
      await ctx.task(shaky);
    } catch (error) {
      long.cancel();
      throw error;
    }
    return long;
  });
  await using engine = await createTestEngine({ definitions: [pair, gated, shaky] });
  const run = await engine.start(pair);
  await rejection(run.result());
  expect(await typesOf(run)).toContain("TaskCancelled");
  works = true;
  await run.retry();
  await expect.poll(() => signals.length).toBe(2);
  gate.open("done");
  expect(await run.result()).toBe("done");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("code that no longer cancels a task stops with the evidence instead of waiting for ever", async () => {
  let cancels = true;
  const stuck = task("stuck", () => new Promise<string>(() => {}));
  const fickle = workflow("fickle", { determinism: "per-type" }, async (ctx) => {
    const started = ctx.task(stuck);
    if (cancels) started.cancel();
    const message = await messageOf(started);
    await ctx.sleep("1 minute");
    return message;
  });
  await using engine = await createTestEngine({ definitions: [fickle, stuck] });
  const run = await engine.start(fickle);
  await engine.clock.advance(0);
  cancels = false;
  await engine.crash();
  await engine.clock.advance("1 minute");
  const stopped = await rejection(run.result());
  expect(stopped.message).toContain(
    "the journal recorded 'TaskCancelled'; the code now waits without requesting it (at Task(0))",
  );
  cancels = true;
  await run.resume();
  expect(await run.result()).toBe("CancelledError: Task stuck was cancelled.");
});

test("strict: another reason, or another place of the cancel, is found by verify", async () => {
  let [reason, early] = ["first", true];
  const work = task("work", () => "done");
  const fickle = workflow("fickle", async (ctx) => {
    const started = ctx.task(work);
    if (early) started.cancel(reason);
    ctx.state.set("a", 1);
    if (!early) started.cancel(reason);
    return messageOf(started);
  });
  await using engine = await createTestEngine({ definitions: [fickle, work] });
  const run = await engine.start(fickle);
  await run.result();
  expect(await run.verify()).toMatchObject({ status: "same" });
  reason = "second";
  expect(await run.verify()).toMatchObject({ status: "mismatch", expected: "second", actual: "first" });
  [reason, early] = ["first", false];
  expect(await run.verify()).toMatchObject({ status: "mismatch", where: "State(0)" });
});

test("a cancel inside a step, and a reason that is no text, are refused", async () => {
  const work = task("work", () => "done");
  const wrong = workflow("wrong", async (ctx) => {
    const started = ctx.task(work);
    const inside = await ctx.run("step", () => started.cancel()).catch((error: { code: string }) => error.code);
    const noText = await (async () => started.cancel(7 as never))().catch((error: { code: string }) => error.code);
    return [inside, noText, await started];
  });
  await using engine = await createTestEngine({ definitions: [wrong, work] });
  expect(await (await engine.start(wrong)).result()).toEqual(["USAGE", "BAD_OPTIONS", "done"]);
});

test("a node of a graph can cancel a task, and has the same result wherever the run is killed", async () => {
  const slow = task("slow", { retry: { maxAttempts: 99, baseDelay: "1 h" } }, () => {
    throw new Error("not yet");
  });
  const quick = task("quick", () => "quick");
  const racing = graph("racing", { state: { winner: last("") } })
    .node("race", async (ctx) => {
      const [one, two] = [ctx.task(slow), ctx.task(quick)];
      const winner = await two;
      one.cancel("lost");
      return { winner: `${winner}, ${await messageOf(one)}` };
    })
    .edge(START, "race")
    .edge("race", END);
  const { output, crashes } = await crashEverywhere(racing, {}, { definitions: [slow, quick] });
  expect(output).toEqual({ winner: "quick, CancelledError: Task slow was cancelled: lost" });
  expect(crashes).toBeGreaterThan(4);
});

// ── undo.U5 ──

test("a canceled task with an undo finishes, is undone at once, and the run ends after that", async () => {
  const gate = createGate<string>();
  const log: string[] = [];
  const signals: AbortSignal[] = [];
  const gated = gatedTask(gate, signals);
  const saga = workflow("saga", { ports: { stop: promise() } }, async (ctx) => {
    const seat = ctx.task(gated, undefined, { undo: async (held) => void log.push(`released ${held}`) });
    await ctx.promise("stop");
    seat.cancel("not needed");
    return messageOf(seat);
  });
  await using engine = await createTestEngine({ definitions: [saga, gated] });
  const run = await engine.start(saga);
  await gate.reached;
  await run.resolve("stop");
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("running");
  expect(signals[0]?.aborted).toBe(false);
  gate.open("seat 7");
  expect(await run.result()).toBe("CancelledError: Task gated was cancelled: not needed");
  expect(log).toEqual(["released seat 7"]);
  expect((await typesOf(run)).slice(-4)).toEqual([
    "TaskCancelRequested",
    "TaskCompleted",
    "OperationCompleted",
    "RunCompleted",
  ]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a run whose code throws while a canceled task is being undone ends after that undo", async () => {
  const undoing = createGate();
  const hold = task("hold", () => "seat 7");
  const log: string[] = [];
  const release = task("release", async (_ctx, _seat: string) => {
    await undoing.wait();
    log.push("released");
  });
  const saga = workflow("saga", { ports: { fail: promise() } }, async (ctx) => {
    const seat = ctx.task(hold, undefined, { undo: release });
    seat.cancel();
    await ctx.promise("fail");
    throw new FatalError("no flight");
  });
  await using engine = await createTestEngine({ definitions: [saga, hold, release] });
  const run = await engine.start(saga);
  await undoing.reached;
  await run.resolve("fail");
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("running");
  undoing.open();
  expect((await rejection(run.result())).cause).toMatchObject({ message: "no flight" });
  expect(log).toEqual(["released"]);
  expect((await rejection(run.retry())).code).toBe("NOT_RETRYABLE");
});

test("a canceled task with an undo that fails has nothing to undo", async () => {
  const gate = createGate<string>();
  const gated = task("gated", async () => {
    await gate.wait();
    throw new FatalError("no seat");
  });
  const saga = workflow("saga", { ports: { stop: promise() } }, async (ctx) => {
    const seat = ctx.task(gated, undefined, { undo: async () => {} });
    await ctx.promise("stop");
    seat.cancel();
    return messageOf(seat);
  });
  await using engine = await createTestEngine({ definitions: [saga, gated] });
  const run = await engine.start(saga);
  await gate.reached;
  await run.resolve("stop");
  await engine.clock.advance(0);
  gate.open("");
  expect(await run.result()).toBe("CancelledError: Task gated was cancelled.");
  expect((await typesOf(run)).slice(-2)).toEqual(["TaskFailed", "RunCompleted"]);
});

test("an undo of a canceled task that fails makes the run fail with UNDO_FAILED, and such a run is not retried", async () => {
  const hold = task("hold", () => "seat 7");
  const saga = workflow("saga", async (ctx) => {
    const seat = ctx.task(hold, undefined, {
      undo: async () => {
        throw new FatalError("the door is closed");
      },
    });
    seat.cancel();
    return messageOf(seat);
  });
  await using engine = await createTestEngine({ definitions: [saga, hold] });
  const run = await engine.start(saga);
  const failed = await rejection(run.result());
  expect(failed.cause).toMatchObject({
    code: "UNDO_FAILED",
    message: expect.stringContaining("1 of 1 steps could not be undone: hold (Task(0)): the door is closed"),
  });
  expect((await rejection(run.retry())).code).toBe("NOT_RETRYABLE");
});

test("a saga that cancels a task and then fails undoes each step once, wherever it is killed", async () => {
  // A step has the same key in every attempt, in all the runs that were killed.
  const steps = new Set<string>();
  const note = task("note", (ctx, what: string) => {
    steps.add(`${ctx.idempotencyKey} ${what}`);
    return what;
  });
  const saga = workflow("saga", async (ctx) => {
    await ctx.task(note, "car", { undo: note });
    const seat = ctx.task(note, "seat", { undo: note });
    const room = ctx.task(note, "room", { undo: note });
    seat.cancel();
    await messageOf(seat);
    await room;
    throw new FatalError("no flight");
  });
  const outer = workflow("outer", async (ctx) => messageOf(ctx.child(saga)));
  const { output, crashes } = await crashEverywhere(outer, undefined, { definitions: [saga, note] });
  expect(output).toBe("FatalError: no flight");
  expect(crashes).toBeGreaterThan(10);
  const named = [...steps].map((step) => step.split(" ")[1]);
  expect(named.toSorted()).toEqual(["car", "car", "room", "room", "seat", "seat"]);
});
