import { expect, test } from "vitest";
import { ConnectionError } from "./backend.ts";
import { unreachableError } from "./retry.ts";

const refused = new Error("connect ECONNREFUSED 127.0.0.1:5432");

test.each([
  ["the driver's message", new ConnectionError("lost", { cause: refused })],
  [
    "the message for the first address of a host name",
    new ConnectionError("lost", { cause: new AggregateError([refused], "") }),
  ],
])("the error for an unreachable database contains %s", (_, cause) => {
  expect(unreachableError("Opening", cause).message).toContain("for 10 s (connect ECONNREFUSED 127.0.0.1:5432). Check");
});

test("the error for an unreachable database has no parentheses when the driver gives no message", () => {
  expect(unreachableError("Opening", new ConnectionError("lost")).message).toContain("for 10 s. Check");
});
