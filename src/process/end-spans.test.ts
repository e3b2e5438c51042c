import { expect, test } from "vitest";
import type { OpenSpan, Outcome, Write } from "../kernel/index.ts";
import { endSpans } from "./end-spans.ts";

/** How many spans of these writes end with that outcome. */
function countEnded(make: (span: OpenSpan) => object, outcome: object): number {
  let ended = 0;
  const span: OpenSpan = {
    trace: { parent: "" },
    call: (work) => work(),
    annotate: () => undefined,
    finish: () => undefined,
    end: () => (ended += 1),
  };
  endSpans(make(span) as Write, outcome as Outcome);
  return ended;
}

test("a span ends only with a write that this process made durable", () => {
  const run = (span: OpenSpan): object => ({ id: "a", span });
  const turn = (span: OpenSpan): object => ({
    write: "turn",
    entries: [{ span }, {}],
    items: [{ span }],
    outgoing: [{ span }],
    children: [{ run: run(span) }],
    span,
  });
  expect(countEnded(turn, { status: "committed", children: [{ id: "a" }] })).toBe(5);
  // The id of the child was taken.
  expect(countEnded(turn, { status: "committed", children: [] })).toBe(4);
  for (const status of ["already_committed", "lease_lost", "conflict"]) expect(countEnded(turn, { status })).toBe(0);
  const returned = (span: OpenSpan): object => ({ write: "return-item", failed: { span } });
  const ended = (span: OpenSpan): object => ({ write: "end-item", arrival: { ran: { span } } });
  for (const write of [returned, ended]) {
    expect(countEnded(write, { status: "committed" })).toBe(1);
    expect(countEnded(write, { status: "lease_lost" })).toBe(0);
  }
  const start = (span: OpenSpan): object => ({ write: "start", run: run(span) });
  for (const [status, count] of [
    ["started", 1],
    ["debounced", 1],
    ["exists", 0],
    ["singleton", 0],
  ] as const)
    expect(countEnded(start, { status })).toBe(count);
});
