// Arguments no type allows, as code without types gives them: refused in our words, before anything is written.

import { expect, test } from "vitest";
import { query, signal, stream, update, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, rejection } from "./world.ts";

const ports = { add: signal<number>(), total: query<number>(), ask: update<number, number>(), shown: stream<number>() };
const waits = workflow("waits", { ports }, async (ctx) => ctx.receive("add"));

/** As any: what is tried here does not compile. */
type Door = (value: any) => Promise<unknown>;

const NO_OPTIONS = [null, 5, "text", [], Symbol("x"), () => 1];

test("what is no object of options, no filter and no place is refused by name, and nothing is written", async () => {
  await using engine = await createTestEngine({ definitions: [waits] });
  const run: any = await engine.start(waits, undefined, { id: "run-1" });
  await engine.clock.advance(0);
  const loose: any = engine;
  const doors: readonly (readonly [what: string, door: Door, wrong: readonly unknown[]])[] = [
    ["options of signal", (value) => run.signal("add", 1, value), NO_OPTIONS],
    ["options of update", (value) => run.update("ask", 1, value), NO_OPTIONS],
    ["beforeStart", (value) => run.signal("add", 1, { beforeStart: value }), ["yes", 1, null]],
    ["name of a signal", (value) => run.signal(value, 1), [null, 5, "", Symbol("x"), "toString", "__proto__"]],
    ["name of a query", (value) => run.query(value), [null, 5, Symbol("x"), "constructor"]],
    ["name of an update", (value) => run.update(value, 1), [null, 5, Symbol("x"), "valueOf"]],
    ["filter of bulk", (value) => loose.bulk("cancel", value), NO_OPTIONS],
    ["options of bulk", (value) => loose.bulk("cancel", {}, value), NO_OPTIONS],
    ["tag", (value) => collect(loose.list({ tag: value })), [5, {}, [], "", Symbol("x")]],
    ["definition", (value) => collect(loose.list({ definition: value })), [5, {}, Symbol("x")]],
    ["status", (value) => collect(loose.list({ status: value })), [5, {}, Symbol("x"), "toString", ["no"]]],
    ["place in the journal", (value) => collect(run.journal({ after: value })), ["1", -1, 1.5, Number.NaN, {}]],
    ["options of journal", (value) => collect(run.journal(value)), NO_OPTIONS],
    ["options of result", (value) => run.result(value), [...NO_OPTIONS, { timeot: 1 }]],
    ["options of stream", async (value) => collect(run.stream("shown", value)), [...NO_OPTIONS, { aftr: 3 }]],
    ["ports", async (value) => workflow("bad", { ports: value }, async () => 1), [null, 5, "text", [], () => 1]],
  ];
  for (const [what, door, wrong] of doors)
    for (const value of wrong) {
      const name = `${what}: ${String(typeof value === "symbol" ? "a symbol" : JSON.stringify(value))}`;
      const error = await rejection(door(value));
      expect(error.code, name).toMatch(/^(BAD_OPTIONS|BAD_NAME|UNKNOWN_PORT)$/);
    }
  await engine.clock.advance(0);
  expect((await run.info()).entries).toBe(2);
  expect((await collect(engine.list())).length).toBe(1);
});
