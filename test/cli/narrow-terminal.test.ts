// Tables on a terminal of 80 columns: ids are printed in full, so that they can be used in the next command.

import { expect, test, vi } from "vitest";
import { finished, isInstalled, startOnTerminal, DEFINITIONS } from "./cli-process.ts";
import { Table } from "../../src/cli/table.ts";
import { greet, review } from "./definitions.ts";
import { loop } from "./graphs.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

// Every command is a process, which is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const UUID = "019a91c4-5b7e-7c3a-9d5e-0c3f5e1b2a47";

async function linesOf(store: StoreWithRuns, ...args: readonly string[]): Promise<readonly string[]> {
  const child = startOnTerminal([...args, "--store", store.url], { columns: 80, env: { NO_COLOR: "1" } });
  const { code, stdout } = await finished(child);
  expect(code, stdout).toBe(0);
  return stdout.replaceAll("\r", "").trimEnd().split("\n");
}

// Needs `script` of util-linux for a pseudo-terminal.
test.skipIf(!isInstalled("script"))("list and schedule show never clip the id of a run", async () => {
  using store = await new StoreWithRuns([review, greet, loop]).start(
    { id: UUID, what: review, until: "waiting" },
    { id: `${UUID}-loop`, what: loop, input: {}, until: "completed" },
  );
  const timing = ["--every", "1h", "--overlap", "allow"];
  await store.cli("schedule", "create", "every-two", DEFINITIONS, "greet", '"Ada"', ...timing);
  const period = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-01T01:00Z"];
  await store.cli("schedule", "backfill", "every-two", ...period);

  const list = await linesOf(store, "list");
  expect(list[0]).toMatch(/^RUN +DEFINITION .*STATUS/);
  expect(list.some((line) => line.startsWith(`${UUID} `) && line.includes(" waiting"))).toBe(true);
  expect(list.some((line) => line.startsWith(`${UUID}-loop `) && line.includes(" completed"))).toBe(true);
  expect(list.some((line) => /^every-two\/2026-01-01T00:\d\d:\d\d\.\d{3}Z +greet /.test(line))).toBe(true);
  expect(list.filter((line) => line.length > 80)).toEqual([]);

  const shown = await linesOf(store, "schedule", "show", "every-two");
  expect(shown.some((line) => /^every-two\/2026-01-01T00:\d\d:\d\d\.\d{3}Z +greet +queued/.test(line))).toBe(true);
  expect(shown.filter((line) => line.length > 80)).toEqual([]);

  const steps = await linesOf(store, "checkpoints", `${UUID}-loop`, "--limit", "3");
  expect(steps.slice(1).every((line) => line.includes(` ${UUID}-loop `))).toBe(true);
  expect(steps.filter((line) => line.length > 80)).toEqual([]);
});

test("a table clips columns first, then omits columns in their order, and never clips the others", () => {
  const columns = [
    { title: "ID" },
    { title: "TEXT", minWidth: 6 },
    { title: "B", dropOrder: 2 },
    { title: "A", dropOrder: 1 },
  ];
  const row = ["id-1234567", "some longer text", "bbbb", "aaaa"];
  const rendered = (width: number): string | undefined => new Table(columns, width).render([row])[1];
  expect(rendered(80)).toBe("id-1234567  some longer text  bbbb  aaaa");
  expect(rendered(32)).toBe("id-1234567  some lo…  bbbb  aaaa");
  expect(rendered(25)).toBe("id-1234567  some l…  bbbb");
  expect(rendered(20)).toBe("id-1234567  some lo…");
  expect(rendered(10)).toBe("id-1234567  some …");
  const table = new Table(columns, 30);
  table.render([row]);
  expect(table.render([["id-with-a-longer-text-than-before", "x", "b", "a"]])[0]).toContain(
    "id-with-a-longer-text-than-before  x",
  );
});
