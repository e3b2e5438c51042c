import { expect, test } from "vitest";
import { serveLimits, type ServeLimits } from "./serve-limits.ts";

test("a limit that does not exist or is no whole number is refused", () => {
  expect(() => serveLimits({ idleMS: 5 } as Partial<ServeLimits>)).toThrow(/no limit "idleMS"/);
  expect(() => serveLimits({ idleMs: 0 })).toThrow(/above 0/);
});
