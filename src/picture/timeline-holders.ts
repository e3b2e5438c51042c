// Timeline holders: which workers held the turn of a run, and where one took over from another.
//
// timeline-holders.H1. The store records who lost a turn and who holds it now. In between, the workers of operations and of a graph's nodes
//   show it: they run in the worker that holds the turn. A turn without any of them leaves a gap.

import type { TimelineHolding, TimelineTakeover } from "../contract/index.ts";
import type { AttemptRecord, RunTurn } from "../kernel/index.ts";
import type { HolderSign } from "../explain/index.ts";
import type { RunFold } from "./run-fold.ts";
import { isoOf, type RawRow } from "./timeline-rows.ts";

export interface HolderFacts {
  readonly fold: RunFold;
  readonly attempts: readonly AttemptRecord[];
  readonly turn: RunTurn | undefined;
  /** The name of the worker that holds the turn. */
  readonly holder: string | undefined;
  readonly rows: readonly RawRow[];
}

interface Holding extends HolderSign {
  readonly lost: boolean;
  readonly isOpen?: boolean;
}

/** timeline-holders.H1 */
export function holdingsOf({ fold, attempts, turn, holder }: HolderFacts): readonly TimelineHolding[] {
  const signs: Holding[] = fold.signs.map((sign) => ({ ...sign, lost: false }));
  for (const { step, outcome, worker, startedAt, at } of attempts)
    if (step === "" && worker !== undefined)
      signs.push({ worker, from: startedAt ?? at, to: at, lost: outcome === "lost" });
  if (turn?.worker !== undefined && holder !== undefined) {
    const from = turn.since ?? fold.times.at(-1) ?? 0;
    signs.push({ worker: holder, from, to: Number.MAX_SAFE_INTEGER, lost: false, isOpen: true });
  }
  const merged: Holding[] = [];
  for (const sign of signs.toSorted((a, b) => a.from - b.from || a.to - b.to)) {
    const last = merged.at(-1);
    if (last?.worker === sign.worker && !last.lost)
      merged[merged.length - 1] = { ...last, ...sign, from: last.from, to: Math.max(last.to, sign.to) };
    // Its loss was recorded; an execution within it is part of it.
    else if (last?.worker === sign.worker && sign.to <= last.to) continue;
    else merged.push(sign);
  }
  return merged.map(({ worker, from, to, lost, isOpen }) => ({
    worker,
    from: isoOf(from),
    ...(isOpen !== true && { to: isoOf(to) }),
    lost,
  }));
}

/** Losses that one reaping found belong to one takeover. */
const SAME_LOSS_MS = 2_000;

export function takeoversOf(facts: HolderFacts): readonly TimelineTakeover[] {
  const lost = facts.attempts.filter(({ outcome }) => outcome === "lost");
  const takeovers: TimelineTakeover[] = [];
  for (let first = 0; first < lost.length;) {
    const { worker, at } = lost[first]!;
    let end = first + 1;
    while (end < lost.length && lost[end]!.worker === worker && lost[end]!.at - at < SAME_LOSS_MS) end += 1;
    takeovers.push(takeoverOf(lost.slice(first, end), facts));
    first = end;
  }
  return takeovers;
}

function takeoverOf(records: readonly AttemptRecord[], { fold, rows, holder, turn }: HolderFacts): TimelineTakeover {
  const [{ worker, at }] = records as [AttemptRecord];
  const turnLost = records.find(({ step }) => step === "");
  const committedAt = turnLost === undefined ? undefined : fold.times[turnLost.seq - 1];
  const seen = records.map(({ startedAt }) => startedAt ?? 0);
  const lostAt = Math.min(at, Math.max(committedAt ?? 0, ...seen));
  const next = rows
    .flatMap(({ spans }) =>
      spans.filter(({ kind, from, worker: by }) => by !== undefined && from >= at && kind !== "queue"),
    )
    .reduce<{ from: number; worker: string } | undefined>(
      (first, { from, worker: by }) => (first === undefined || from < first.from ? { from, worker: by! } : first),
      undefined,
    );
  const isHeld = turnLost !== undefined && holder !== undefined && (turn?.since ?? 0) >= at;
  const to = next?.worker ?? (isHeld ? holder : undefined);
  const replayedBy = fold.times.find((time) => time >= at);
  return {
    ...(worker !== undefined && { from: worker }),
    to: to ?? "",
    lostAt: isoOf(lostAt),
    takenAt: isoOf(next?.from ?? (isHeld ? turn?.since : undefined) ?? replayedBy ?? at),
    lostSteps: rows
      .filter(({ spans }) => spans.some((span) => span.kind === "lost" && span.worker === worker && span.to === at))
      .map(({ draft }) => draft.command),
    replayedEntries: turnLost?.seq ?? 0,
  };
}

/** The time in which user code executed, overlaps counted once. */
export function workedMs(rows: readonly RawRow[], now: number): number {
  const spans = rows
    .flatMap(({ spans: all, draft }) =>
      draft.kind === "child"
        ? []
        : all.filter(({ kind }) => kind === "work" || kind === "failed" || kind === "running"),
    )
    .map(({ from, to = now }) => [from, Math.max(from, to)] as const)
    .toSorted((a, b) => a[0] - b[0]);
  let total = 0;
  let end = 0;
  for (const [from, to] of spans) {
    total += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return Math.round(total);
}
