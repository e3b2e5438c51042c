// Timeouts: what an action's `timeout` and a flow's `deadline` do, and what `catch` handles.

import { expect, test } from "vitest";
import { flow, typed } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";

const forever = (): Promise<string> => new Promise(() => {});

/** An action that hangs in the attempts that are listed, and otherwise throws. */
function hanging(attempts: readonly number[], options: { maxAttempts?: number; catchTimeouts?: boolean } = {}) {
  const { maxAttempts = 1, ...others } = options;
  return flow("hanging", { input: typed<void>() })
    .action(
      "paid",
      ["input"],
      { timeout: "5 s", retry: { maxAttempts, baseDelay: 1, maxDelay: 1 }, catch: (error) => error.message, ...others },
      (ctx): Promise<string> => {
        if (attempts.includes(ctx.attempt)) return forever();
        throw new Error("declined");
      },
    )
    .output(["paid"], ({ paid }) => paid);
}

test("`catch` does not handle a timeout, because the call may still take effect: the run fails, and the error says so", async () => {
  const once = hanging([1]);
  await using engine = await createTestEngine({ definitions: [once] });
  const run = await engine.start(once, undefined);
  await engine.clock.advance("5 s");
  expect(await rejection(run.result())).toMatchObject({
    code: "RUN_FAILED",
    cause: { code: "ATTEMPT_TIMEOUT", message: expect.stringMatching(/took longer.*`catchTimeouts: true`/) as string },
  });
});

test("`catch` does not handle a timeout of the last of several attempts", async () => {
  const twice = hanging([2], { maxAttempts: 2 });
  await using engine = await createTestEngine({ definitions: [twice] });
  const run = await engine.start(twice, undefined);
  await engine.clock.advance("10 s");
  expect(await rejection(run.result())).toMatchObject({
    cause: {
      code: "MAX_ATTEMPTS_EXCEEDED",
      message: expect.stringContaining("`catchTimeouts: true`") as string,
      cause: { code: "ATTEMPT_TIMEOUT" },
    },
  });
});

test("`catch` handles the error of the last attempt, also after an attempt that timed out", async () => {
  const recovered = hanging([1], { maxAttempts: 2 });
  await using engine = await createTestEngine({ definitions: [recovered] });
  const run = await engine.start(recovered, undefined);
  await engine.clock.advance("10 s");
  expect(await run.result()).toMatch(/declined/);
});

test("with `catchTimeouts: true`, `catch` handles a timeout", async () => {
  const all = hanging([1], { catchTimeouts: true });
  await using engine = await createTestEngine({ definitions: [all] });
  const run = await engine.start(all, undefined);
  await engine.clock.advance("5 s");
  expect(await run.result()).toMatch(/took longer than 5000 ms/);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an item that times out is a rejected entry of a spread with `settle`", async () => {
  const each = flow("each", { input: typed<void>() })
    .spread(
      "all",
      ["input"],
      { settle: true, timeout: "5 s" },
      () => [1, 2],
      (_ctx, item) => (item === 1 ? forever() : "done"),
    )
    .output(["all"], ({ all }) => all.map((one) => (one.status === "fulfilled" ? one.value : one.reason.code)));
  await using engine = await createTestEngine({ definitions: [each] });
  const run = await engine.start(each, undefined);
  await engine.clock.advance("5 s");
  expect(await run.result()).toEqual(["ATTEMPT_TIMEOUT", "done"]);
});

test("no `catch` handles the deadline of the run", async () => {
  const late = flow("late", { input: typed<void>(), deadline: "1 minute" })
    .action("a", ["input"], { catch: () => "caught", catchTimeouts: true }, forever)
    .output(["a"], ({ a }) => a);
  await using engine = await createTestEngine({ definitions: [late] });
  const run = await engine.start(late, undefined);
  await engine.clock.advance("1 minute");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "DEADLINE_EXCEEDED" } });
});
