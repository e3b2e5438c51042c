// The statements of one ctx.tx function (src/stores/remote/user-calls.ts).

import { expect, test } from "vitest";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { UserCalls } from "../../src/stores/remote/user-calls.ts";

class Calls extends UserCalls {
  query(answer: Promise<string>): Promise<string> {
    return this.enqueue(() => answer);
  }
}

function setUp() {
  const time = createVirtualTime();
  const calls = new Calls(time.timers, 10_000);
  let said: unknown;
  calls.idleTimeout.catch((error: unknown) => (said = error));
  return { time, calls, said: () => said };
}

test("a function that awaits every statement can be committed", async () => {
  const { calls } = setUp();
  expect(await calls.query(Promise.resolve("one"))).toBe("one");
  await calls.ended();
  await expect(calls.query(Promise.resolve("late"))).rejects.toMatchObject({ code: "USAGE" });
});

test("a function that returns before its statement settles is refused, after the statement has settled", async () => {
  const { calls } = setUp();
  const statement = Promise.withResolvers<string>();
  const order: string[] = [];
  void calls.query(statement.promise.finally(() => order.push("statement")));
  const ended = calls.ended().catch((error: unknown) => {
    order.push("function");
    throw error;
  });
  statement.resolve("one");
  await expect(ended).rejects.toMatchObject({ code: "USAGE" });
  expect(order).toEqual(["statement", "function"]);
});

test("a function that sends no statement for too long is aborted; one that waits for its SQL is not", async () => {
  const { time, calls, said } = setUp();
  time.advanceTo(time.now() + 9_000);
  const statement = Promise.withResolvers<string>();
  const answer = calls.query(statement.promise);
  time.advanceTo(time.now() + 60_000);
  expect(said()).toBeUndefined();
  statement.resolve("one");
  await answer;
  time.advanceTo(time.now() + 9_999);
  expect(said()).toBeUndefined();
  time.advanceTo(time.now() + 1);
  await expect(calls.idleTimeout).rejects.toThrow();
  expect(said()).toMatchObject({ code: "ATTEMPT_TIMEOUT" });
});

test("a function that has returned is not aborted", async () => {
  const { time, calls, said } = setUp();
  calls.close();
  time.advanceTo(time.now() + 60_000);
  expect(said()).toBeUndefined();
});
