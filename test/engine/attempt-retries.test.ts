// ACCEPTANCE 5 and 7: retries of tasks and operations, under virtual time.

import { describe, expect, test } from "vitest";
import { FatalError, RetryLaterError, task, workflow, type RepriseError, type RetryPolicy } from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { createGate, rejection } from "./world.ts";

interface Call {
  readonly attempt: number;
  readonly at: number;
  readonly key: string;
}

/** A task or an operation that records its calls and runs `act`. */
function createSubject(kind: "task" | "operation", retry: RetryPolicy | undefined, act: (attempt: number) => unknown) {
  const calls: Call[] = [];
  let engine: TestEngine | undefined;
  const call = (ctx: { attempt: number; idempotencyKey: string }): unknown => {
    calls.push({ attempt: ctx.attempt, at: engine?.clock.now().getTime() ?? 0, key: ctx.idempotencyKey });
    return act(ctx.attempt);
  };
  const policy = retry === undefined ? {} : { retry };
  const work = task("work", policy, (ctx) => call(ctx));
  const flow = workflow("retrying", async (ctx) =>
    kind === "task" ? ctx.task(work) : ctx.run("work", (op) => call(op), policy),
  );
  return {
    calls,
    async start(id = "run-1") {
      const made = await createTestEngine({ definitions: [flow, work] });
      engine = made as unknown as TestEngine;
      return { engine: made, run: await made.start(flow, undefined, { id }) };
    },
    /** Milliseconds between one attempt and the next. */
    delays: () => calls.slice(1).map(({ at }, index) => at - (calls[index]?.at ?? 0)),
  };
}

const fail = (attempt: number): never => {
  throw new TypeError(`attempt ${attempt} failed`);
};

describe.each(["task", "operation"] as const)("%s", (kind) => {
  test("ACCEPTANCE 7: with maxAttempts 3, three failures end in MAX_ATTEMPTS_EXCEEDED", async () => {
    const subject = createSubject(kind, { maxAttempts: 3 }, fail);
    const { engine, run } = await subject.start();
    await engine.clock.advance("1 hour");
    const failure = (await rejection(run.result())) as RepriseError;
    expect(subject.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(subject.calls.map(({ key }) => key)).size).toBe(1);
    expect(failure.code).toBe("RUN_FAILED");
    expect(failure.cause).toMatchObject({ code: "MAX_ATTEMPTS_EXCEEDED" });
    const last = (failure.cause as Error).cause;
    expect(last).toBeInstanceOf(TypeError);
    expect((last as Error).message).toBe("attempt 3 failed");
    expect(await run.verify()).toMatchObject({ status: "same" });
    await engine.close();
  });

  test("ACCEPTANCE 7: without a policy, after a FatalError or with `retryable: false` it runs once", async () => {
    const policies: [RetryPolicy | undefined, (attempt: number) => unknown][] = [
      [undefined, fail],
      [{ maxAttempts: 1 }, fail],
      [{ maxAttempts: 5, retryable: (error) => !(error instanceof TypeError) }, fail],
      [
        { maxAttempts: 5 },
        () => {
          throw new FatalError("hopeless");
        },
      ],
      [{ maxAttempts: 5 }, () => () => "a function is not data"],
    ];
    for (const [policy, act] of policies) {
      const subject = createSubject(kind, policy, act);
      const { engine, run } = await subject.start();
      await engine.clock.advance("1 hour");
      const { cause } = await rejection(run.result());
      expect(subject.calls).toHaveLength(1);
      expect((cause as RepriseError).code).not.toBe("MAX_ATTEMPTS_EXCEEDED");
      await engine.close();
    }
  });

  test("ACCEPTANCE 5: the delays follow min(base · 2^attempt + jitter, max), and the same run id has the same jitter", async () => {
    const policy = { maxAttempts: 8, baseDelay: "1s", maxDelay: "30s" } as const;
    const measure = async (id: string): Promise<readonly number[]> => {
      const subject = createSubject(kind, policy, fail);
      const { engine } = await subject.start(id);
      await engine.clock.advance("1 hour");
      await engine.close();
      return subject.delays();
    };
    const delays = await measure("order-7");
    expect(delays).toHaveLength(7);
    delays.slice(0, 5).forEach((delay, attempt) => {
      expect(delay).toBeGreaterThanOrEqual(1_000 * 2 ** attempt);
      expect(delay).toBeLessThan(1_000 * 2 ** attempt + 1_000);
    });
    expect(delays.slice(5)).toEqual([30_000, 30_000]);
    expect(await measure("order-7")).toEqual(delays);
    expect(await measure("order-8")).not.toEqual(delays);
  });

  test("ACCEPTANCE 5: a crash between two attempts changes neither the attempt's number nor its time", async () => {
    const quiet = createSubject(kind, { maxAttempts: 3, baseDelay: "1 minute" }, fail);
    const undisturbed = await quiet.start();
    await undisturbed.engine.clock.advance("1 hour");
    const subject = createSubject(kind, { maxAttempts: 3, baseDelay: "1 minute" }, fail);
    const { engine, run } = await subject.start();
    await engine.clock.advance("1s");
    await engine.crash();
    await engine.clock.advance("1 hour");
    expect((await rejection(run.result())).cause).toMatchObject({ code: "MAX_ATTEMPTS_EXCEEDED" });
    expect(subject.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(subject.delays()).toEqual(quiet.delays());
    await engine.close();
    await undisturbed.engine.close();
  });

  test("RetryLaterError sets the delay, and counts as an attempt", async () => {
    const subject = createSubject(kind, { maxAttempts: 2 }, (attempt) => {
      if (attempt === 1) throw new RetryLaterError("90s");
      return "done";
    });
    const { engine, run } = await subject.start();
    await engine.clock.advance("89s");
    expect(subject.calls).toHaveLength(1);
    await engine.clock.advance("1s");
    expect(await run.result()).toBe("done");
    expect(subject.delays()).toEqual([90_000]);
    await engine.close();
  });
});

describe.each(["task", "operation"] as const)("timeout of a %s", (kind) => {
  function createHanging(options: { beat?: boolean }) {
    const signals: AbortSignal[] = [];
    const gate = createGate();
    const beats: (() => void)[] = [];
    const hang = (ctx: { abortSignal: AbortSignal; heartbeat(): void }): Promise<string> => {
      signals.push(ctx.abortSignal);
      if (options.beat === true) beats.push(() => ctx.heartbeat());
      return gate.wait().then(() => "too late or not");
    };
    const policy = { timeout: "10s" } as const;
    const work = task("work", policy, (ctx) => hang(ctx));
    const flow = workflow("hanging", async (ctx) =>
      kind === "task" ? ctx.task(work) : ctx.run("work", (op) => hang(op), policy),
    );
    return { signals, gate, beats, work, flow };
  }

  test("an attempt that takes too long fails with ATTEMPT_TIMEOUT and its AbortSignal is aborted", async () => {
    const { signals, gate, work, flow } = createHanging({});
    await using engine = await createTestEngine({ definitions: [flow, work] });
    const run = await engine.start(flow);
    await gate.reached;
    await engine.clock.advance("9s");
    expect(signals[0]?.aborted).toBe(false);
    await engine.clock.advance("1s");
    expect(signals[0]?.aborted).toBe(true);
    expect(signals[0]?.reason).toMatchObject({ code: "ATTEMPT_TIMEOUT" });
    expect((await rejection(run.result())).cause).toMatchObject({ code: "ATTEMPT_TIMEOUT" });
    gate.open();
  });

  test("heartbeat() restarts the attempt's timeout", async () => {
    const { signals, gate, beats, work, flow } = createHanging({ beat: true });
    await using engine = await createTestEngine({ definitions: [flow, work] });
    const run = await engine.start(flow);
    await gate.reached;
    for (let round = 0; round < 3; round += 1) {
      await engine.clock.advance("9s");
      beats[0]?.();
    }
    expect(signals[0]?.aborted).toBe(false);
    gate.open();
    expect(await run.result()).toBe("too late or not");
  });
});
