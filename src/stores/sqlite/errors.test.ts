import { expect, test } from "vitest";
import { InvariantError, RepriseError } from "../../base/index.ts";
import { isBusy, isUnknownCommit, storeErrorOf } from "./errors.ts";

const sqliteError = (errcode: number): Error => Object.assign(new Error("text that says nothing"), { errcode });

test.each([
  [5, "STORE_BUSY"],
  [6, "STORE_BUSY"],
  [517, "STORE_BUSY"],
  [8, "STORE_READ_ONLY"],
  [1032, "STORE_REPLACED"],
  [10, "STORE_IO"],
  [1034, "STORE_IO"],
  [11, "STORE_CORRUPT"],
  [267, "STORE_CORRUPT"],
  [13, "STORE_FULL"],
  [14, "STORE_IO"],
  [18, "PAYLOAD_TOO_LARGE"],
  [26, "STORE_CORRUPT"],
  [1, "INVARIANT"],
  [1555, "INVARIANT"],
  [2067, "INVARIANT"],
])("SQLite's code %i becomes %s and keeps its cause", (errcode, code) => {
  const cause = sqliteError(errcode);
  const error = storeErrorOf(cause, "Committing");
  expect(error).toMatchObject({ code, cause, details: { errcode } });
  expect(error instanceof InvariantError).toBe(code === "INVARIANT");
});

test("errors of Reprise pass through, and unknown errors are invariant errors", () => {
  const ours = new RepriseError("STORE_REPLACED", "gone");
  expect(storeErrorOf(ours, "Committing")).toBe(ours);
  expect(storeErrorOf(new TypeError("cannot be bound"), "Committing")).toBeInstanceOf(InvariantError);
});

test("only locks are retried, and only disk errors leave a COMMIT unknown", () => {
  expect([5, 6, 261, 517, 10, 13].map((code) => isBusy(sqliteError(code)))).toEqual([
    true,
    true,
    true,
    true,
    false,
    false,
  ]);
  expect([10, 1034, 13, 5, 19].map((code) => isUnknownCommit(sqliteError(code)))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});
