import { expect, test } from "vitest";
import { LinkError } from "./backend.ts";
import { unreachable } from "./patience.ts";

const refused = new Error("connect ECONNREFUSED 127.0.0.1:5432");

test.each([
  ["the driver's words", new LinkError("lost", { cause: refused })],
  ["those of the first address of a name", new LinkError("lost", { cause: new AggregateError([refused], "") })],
])("a database that cannot be reached is told with %s", (_, cause) => {
  expect(unreachable("Opening", cause).message).toContain("for 10 s (connect ECONNREFUSED 127.0.0.1:5432). Check");
});

test("without words nothing is told", () => {
  expect(unreachable("Opening", new LinkError("lost")).message).toContain("for 10 s. Check");
});
