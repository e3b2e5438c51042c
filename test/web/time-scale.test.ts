// The time scale of a run, and the parser of events: pure parts of the dashboard.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Timeline, TimelineRow } from "../../src/contract/index.ts";
import { createEventParser, type ServerEvent } from "../../web/src/event-parser.ts";
import { createTimeScale } from "../../web/src/pages/run/time-scale.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const iso = (ms: number): string => new Date(START + ms).toISOString();

function timelineOf(spans: readonly (readonly [number, number])[], endMs: number, untilMs?: number): Timeline {
  const row = (from: number, to: number, index: number): TimelineRow => ({
    command: `Task(${index})`,
    kind: "task",
    name: "t",
    state: "completed",
    attempts: 1,
    spans: [{ kind: "work", from: iso(from), to: iso(to) }],
  });
  const rows = spans.map(([from, to], index) => row(from, to, index));
  const open: TimelineRow = {
    ...row(endMs, endMs, rows.length),
    kind: "promise",
    state: "open",
    spans: [{ kind: "open", from: iso(endMs), ...(untilMs !== undefined && { until: iso(untilMs) }) }],
  };
  return {
    run: "r",
    startedAt: iso(0),
    now: iso(endMs),
    ...(untilMs === undefined && { endedAt: iso(endMs) }),
    rows: untilMs === undefined ? rows : [...rows, open],
    more: false,
    holdings: [],
    takeovers: [],
    workedMs: 0,
  };
}

test("a run that works for seconds and waits for an hour shows its work", () => {
  const timeline = timelineOf([[0, 10_000]], 3_600_000, 7_200_000);
  const folded = createTimeScale(timeline, START + 3_600_000, true);
  const linear = createTimeScale(timeline, START + 3_600_000, false);
  expect(folded.folds).toHaveLength(1);
  expect(folded.place(START + 10_000)).toBeGreaterThan(0.5);
  expect(linear.place(START + 10_000)).toBeLessThan(0.01);
  expect(folded.ticks.map(({ label }) => label)).toContain("now");
});

test("the time without a worker is never folded", () => {
  const timeline: Timeline = {
    ...timelineOf([[0, 1000]], 60_000),
    takeovers: [{ to: "b", lostAt: iso(1000), takenAt: iso(60_000), lostSteps: [], replayedEntries: 1 }],
  };
  expect(createTimeScale(timeline, 0, true).folds).toEqual([]);
});

test("a later time never stands further left, whatever a run did (time-scale.T1)", () => {
  const spans = fc.array(fc.tuple(fc.nat(100_000), fc.nat(100_000)), { maxLength: 8 });
  fc.assert(
    fc.property(
      spans,
      fc.nat(400_000),
      fc.option(fc.nat(900_000), { nil: undefined }),
      fc.boolean(),
      (pairs, end, until, fold) => {
        const sorted = pairs.map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
        const scale = createTimeScale(timelineOf(sorted, end, until), START + end, fold);
        let before = 0;
        for (let time = -1000; time < 1_000_000; time += 7919) {
          const at = scale.place(START + time);
          expect(at).toBeGreaterThanOrEqual(before - 1e-9);
          expect(at).toBeLessThanOrEqual(1 + 1e-9);
          before = at;
        }
        expect(scale.ticks.length).toBeLessThan(20);
      },
    ),
    { numRuns: 200 },
  );
});

test("events are read the same, wherever their text is cut", () => {
  const text = ': hello\n\nid: 1\nevent: run\ndata: {"a":\ndata: 1}\n\nid: 2\r\nevent: queue\r\ndata: {}\r\n\r\n';
  const read = (chunks: readonly string[]): readonly ServerEvent[] => {
    const events: ServerEvent[] = [];
    const parser = createEventParser((event) => events.push(event));
    for (const chunk of chunks) parser.push(chunk);
    return events;
  };
  const whole = read([text]);
  expect(whole).toEqual([
    { event: "run", data: '{"a":\n1}', id: "1" },
    { event: "queue", data: "{}", id: "2" },
  ]);
  for (let first = 0; first < text.length; first += 1) {
    for (let second = first; second < text.length; second += 3) {
      expect(read([text.slice(0, first), text.slice(first, second), text.slice(second)])).toEqual(whole);
    }
  }
});
