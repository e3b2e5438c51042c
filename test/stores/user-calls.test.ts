import { expect, test } from "vitest";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { UserCalls } from "../../src/stores/remote/user-calls.ts";

class Calls extends UserCalls {
  query(answer: Promise<string>): Promise<string> {
    return this.inTurn(() => answer);
  }
}

function world() {
  const time = createVirtualTime();
  const calls = new Calls(time.timers, 10_000);
  let said: unknown;
  calls.idleTimeout.catch((error: unknown) => (said = error));
  return { time, calls, said: () => said };
}

test("a function that awaits everything ends well", async () => {
  const { calls } = world();
  expect(await calls.query(Promise.resolve("one"))).toBe("one");
  await calls.ended();
  await expect(calls.query(Promise.resolve("late"))).rejects.toMatchObject({ code: "USAGE" });
});

test("a function that ends before its statement does is refused once that is over", async () => {
  const { calls } = world();
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

test("a function that asks for nothing for too long is given up, not one that waits for its SQL", async () => {
  const { time, calls, said } = world();
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

test("nobody is given up who has ended", async () => {
  const { time, calls, said } = world();
  calls.close();
  time.advanceTo(time.now() + 60_000);
  expect(said()).toBeUndefined();
});
