import { expect, test } from "vitest";
import { lacksRuntime, MAX_RUNTIMES, runtimesOf, withRuntime } from "./runtimes.ts";

test("a row that an earlier version wrote has one runtime", () => {
  const runtime = '{"node":"24.1.0","v8":"13.6","icu":"78.3","tz":"2026c"}';
  expect(runtimesOf({ runtime })).toEqual([{ node: "24.1.0", v8: "13.6", icu: "78.3", tz: "2026c" }]);
});

test("runtimes are read in the order they were added, and no runtime is added twice", () => {
  let column = "";
  for (const node of ["1", "2", "1", "3", "2"]) column = withRuntime(column, `{"node":"${node}"}`) ?? column;
  expect(runtimesOf({ runtime: column })).toEqual([{ node: "1" }, { node: "2" }, { node: "3" }]);
  expect([lacksRuntime(column, '{"node":"2"}'), lacksRuntime(column, '{"node":"4"}')]).toEqual([false, true]);
});

test("the seventeenth runtime is not added, and no commit brings it", () => {
  const lines = Array.from({ length: MAX_RUNTIMES }, (_, n) => `{"node":"${n}"}`);
  const full = lines.join("\n");
  expect(withRuntime(full, '{"node":"17"}')).toBeUndefined();
  expect(lacksRuntime(full, '{"node":"17"}')).toBe(false);
});

test("a line that is no object of JSON is left out", () => {
  expect(runtimesOf({ runtime: 'replay\n7\n{"node":"1"}' })).toEqual([{ node: "1" }]);
});
