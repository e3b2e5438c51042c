// Timeline rows: the steps of a run with waiting and work apart.
//
// timeline-rows.W1. The spans of a row follow each other: between two executions there is backoff after a failure, and queue otherwise.
// timeline-rows.W2. An operation has no record of an execution that was lost with its worker. Its number tells how many there were
//   (attempts.X1); each is drawn from the last commit before the loss to the time when the loss was found.

import type { ThrownError, TimelineRow, TimelineSpan } from "../contract/index.ts";
import { errorIn, newStep, type EndedExecution, type Step } from "../explain/index.ts";
import { parseItemName, promiseNameOf, type AttemptRecord, type OpenItem, type RunWork } from "../kernel/index.ts";
import type { RunFold } from "./run-fold.ts";

export interface RowFacts {
  readonly fold: RunFold;
  /** Those of the fold, by command. */
  readonly steps: RunFold["steps"];
  readonly attempts: readonly AttemptRecord[];
  /** Undefined: the run has ended. */
  readonly work: RunWork | undefined;
  readonly workerName: (worker: number | undefined) => string | undefined;
  /** The nodes of a flow that a node needs, if this process has its definition. */
  readonly needs: ((node: string) => readonly string[]) | undefined;
  readonly startedAt: number;
  readonly now: number;
}

/** An execution, or a wait, in milliseconds. */
export interface RawSpan {
  readonly kind: TimelineSpan["kind"];
  readonly from: number;
  readonly to?: number | undefined;
  readonly until?: number | undefined;
  readonly attempt?: number | undefined;
  readonly execution?: number | undefined;
  readonly worker?: string | undefined;
  readonly error?: EndedExecution["error"];
}

export interface RawRow {
  readonly draft: Step;
  readonly spans: readonly RawSpan[];
  readonly state: TimelineRow["state"];
  readonly running: number;
}

/** In the order of their beginning. */
export function rawRowsOf(facts: RowFacts): readonly RawRow[] {
  const { steps, attempts, work } = facts;
  const recorded = Map.groupBy(attempts, ({ step }) => spreadOf(step, facts) ?? step);
  const items = Map.groupBy(work?.items ?? [], ({ item }) => spreadOf(item, facts) ?? parseItemName(item).node);
  const rows: RawRow[] = [];
  for (const draft of steps.values())
    rows.push(rawRow(draft, recorded.get(draft.command) ?? [], items.get(draft.command) ?? [], facts));
  for (const draft of [...pendingNodes(facts), ...queuedNodes(facts, items)])
    rows.push(rawRow(draft, recorded.get(draft.command) ?? [], items.get(draft.command) ?? [], facts));
  // A node comes before what its code made in the same millisecond.
  return rows.toSorted(
    (a, b) => startOf(a) - startOf(b) || Number(a.draft.parent !== undefined) - Number(b.draft.parent !== undefined),
  );
}

function startOf({ spans, draft }: RawRow): number {
  return spans[0]?.from ?? draft.startedAt ?? draft.endedAt ?? 0;
}

/** The spread that an item belongs to. */
function spreadOf(item: string, { steps }: RowFacts): string | undefined {
  const { node, index } = parseItemName(item);
  return index !== undefined && steps.get(node)?.items !== undefined ? node : undefined;
}

/** Nodes of a graph's next step that have no entry yet. */
function pendingNodes({ fold, steps, work }: RowFacts): readonly Step[] {
  const { current } = fold;
  if (current === undefined || work === undefined) return [];
  return current.frontier.flatMap(({ node }, index): Step[] => {
    const command = `Node(${current.step + 1}.${index})`;
    return steps.has(command) ? [] : [newStep(command, "node", node, current.at)];
  });
}

/** Nodes of a flow that are queued or run, and have no entry yet. */
function queuedNodes({ steps }: RowFacts, items: ReadonlyMap<string, readonly OpenItem[]>): readonly Step[] {
  return [...items].flatMap(([name, [first]]): Step[] => {
    if (first?.kind !== "node" || steps.has(name)) return [];
    return [newStep(name, "node", name, first.since ?? first.availableAt)];
  });
}

function rawRow(draft: Step, recorded: readonly AttemptRecord[], items: readonly OpenItem[], facts: RowFacts): RawRow {
  if (draft.kind === "spread") return spreadRow(draft, recorded, items, facts);
  const isExecuted = draft.kind === "task" || draft.kind === "operation" || draft.kind === "node";
  if (!isExecuted) return waitRow(draft, facts);
  const executions = [...draft.executions.map(spanOfEnd), ...recorded.map(spanOfRecord), ...lostSpans(draft, facts)];
  const requestedAt = readyAt(draft, facts);
  const spans = withWaits(
    executions.toSorted((a, b) => a.from - b.from),
    requestedAt,
  );
  if (draft.state !== "open") return { draft, spans, state: draft.state, running: 0 };
  return openRow(draft, spans, requestedAt, items[0], facts);
}

/** When a node of a flow could start: when the last of its inputs had arrived. */
function readyAt(
  { command, startedAt: requestedAt, executions }: Step,
  { steps, needs, startedAt }: RowFacts,
): number | undefined {
  const inputs = needs?.(command);
  if (inputs === undefined) return requestedAt;
  const ready = inputs.map((input) => steps.get(input)?.endedAt ?? startedAt);
  const at = Math.max(startedAt, ...ready);
  const first = executions[0]?.from ?? at;
  return Math.min(at, first);
}

function spanOfEnd({ kind, from, to, attempt, execution, worker, error, retryAt }: EndedExecution): RawSpan {
  return { kind, from, to: Math.max(from, to), attempt, execution, worker, error, until: retryAt };
}

function spanOfRecord({ outcome, at, startedAt = at, attempt, execution, worker, data }: AttemptRecord): RawSpan {
  return {
    kind: outcome,
    from: startedAt,
    to: at,
    attempt: attempt + 1,
    execution,
    worker,
    error: data === undefined ? undefined : errorIn({ data }),
  };
}

/** timeline-rows.W2 */
function lostSpans({ kind, executions }: Step, { fold, attempts }: RowFacts): readonly RawSpan[] {
  if (kind === "task") return [];
  const lost = attempts.filter(({ step, outcome }) => step === "" && outcome !== "failed");
  if (lost.length === 0) return [];
  const spans: RawSpan[] = [];
  let counted = 0;
  for (const { execution = 1, attempt, from } of executions) {
    const missing = execution - attempt - counted;
    if (missing <= 0) continue;
    for (const record of lost.filter(({ at }) => at <= from).slice(-missing)) {
      const since = fold.times[record.seq - 1] ?? record.startedAt ?? record.at;
      spans.push({ kind: record.outcome, from: Math.min(since, record.at), to: record.at, worker: record.worker });
    }
    counted += missing;
  }
  return spans;
}

/** timeline-rows.W1 */
function withWaits(executions: readonly RawSpan[], requestedAt: number | undefined): readonly RawSpan[] {
  const spans: RawSpan[] = [];
  let end = requestedAt;
  let before: RawSpan | undefined;
  for (const execution of executions) {
    if (end !== undefined && execution.from > end)
      spans.push({ kind: before?.kind === "failed" ? "backoff" : "queue", from: end, to: execution.from });
    const { until: _until, ...shown } = execution;
    spans.push(shown);
    end = Math.max(end ?? 0, execution.to ?? execution.from);
    before = execution;
  }
  return spans;
}

/** A step that has not ended: it runs, waits for a worker, or for its next attempt. */
function openRow(
  draft: Step,
  spans: readonly RawSpan[],
  requestedAt: number | undefined,
  item: OpenItem | undefined,
  facts: RowFacts,
): RawRow {
  const { work, workerName, startedAt, steps, now } = facts;
  const last = spans.at(-1);
  const from = Math.max(last?.to ?? requestedAt ?? startedAt, requestedAt ?? 0);
  const row = (state: TimelineRow["state"], more: readonly RawSpan[]): RawRow => ({
    draft,
    spans: [...spans, ...more.filter((span) => span.to === undefined || span.to > span.from)],
    state,
    running: state === "running" ? 1 : 0,
  });
  const running = (since: number, worker: number | undefined, attempt: number): RawRow =>
    row("running", [
      { kind: last?.kind === "failed" ? "backoff" : "queue", from, to: Math.max(from, since) },
      { kind: "running", from: Math.max(from, since), worker: workerName(worker), attempt },
    ]);
  if (item !== undefined) {
    if (item.state === "leased") return running(item.since ?? from, item.worker, item.attempt + 1);
    if (item.state === "delayed" && item.attempt > 0)
      return row("open", [{ kind: "backoff", from, until: item.availableAt }]);
    return row("queued", [{ kind: "queue", from }]);
  }
  const retryAt = draft.executions.at(-1)?.retryAt;
  if (retryAt !== undefined && retryAt > now) return row("open", [{ kind: "backoff", from, until: retryAt }]);
  if (draft.kind === "task" || work === undefined)
    return row(work === undefined ? "cancelled" : "queued", [{ kind: "queue", from }]);
  const isWaiting = [...steps.values()].some(({ parent, state }) => parent === draft.command && state === "open");
  if (isWaiting) return row("open", [{ kind: "open", from }]);
  const { turn } = work;
  if (turn.worker === undefined) return row("queued", [{ kind: "queue", from }]);
  return running(Math.max(turn.since ?? from, requestedAt ?? 0), turn.worker, draft.executions.length + 1);
}

/** A wait for a timer, a message or a child. */
function waitRow(draft: Step, { startedAt: begin }: RowFacts): RawRow {
  const { kind, startedAt: requestedAt = begin, endedAt, until, state } = draft;
  const isWork = kind === "child" || kind === "update" || kind === "send";
  const span: RawSpan =
    state === "open"
      ? { kind: kind === "child" ? "running" : "open", from: requestedAt, until }
      : { kind: isWork ? (state === "failed" ? "failed" : "work") : "open", from: requestedAt, to: endedAt, until };
  return { draft, spans: [span], state: state === "open" && kind === "child" ? "running" : state, running: 0 };
}

function spreadRow(
  draft: Step,
  recorded: readonly AttemptRecord[],
  items: readonly OpenItem[],
  { startedAt: begin }: RowFacts,
): RawRow {
  const { items: spread, startedAt: requestedAt = begin, state } = draft;
  const running = items.filter(({ state: one }) => one === "leased").length;
  const first = spread?.firstAt ?? items.find(({ since }) => since !== undefined)?.since;
  const spans: RawSpan[] = [];
  if ((first ?? requestedAt) > requestedAt) spans.push({ kind: "queue", from: requestedAt, to: first });
  const lost = recorded.filter(({ outcome }) => outcome === "lost");
  const isOpen = state === "open";
  if (first !== undefined)
    spans.push({
      kind: isOpen ? "running" : state === "failed" || (spread?.failed ?? 0) > 0 ? "failed" : "work",
      from: first,
      ...(!isOpen && { to: spread?.lastAt ?? draft.endedAt }),
      error: spread?.error,
    });
  else if (isOpen) spans.push({ kind: "queue", from: requestedAt });
  spans.push(...lost.slice(0, MAX_LOST).map(spanOfRecord));
  return { draft, spans, state: !isOpen ? state : running > 0 || first !== undefined ? "running" : "queued", running };
}

const MAX_LOST = 20;

/** How a thrown value is shown; undefined: the caller may not see it. */
export type ShowError = (thrown: NonNullable<EndedExecution["error"]>) => ThrownError | undefined;

export function rowOf(
  { draft, spans, state, running }: RawRow,
  showError: ShowError,
  idempotencyKey?: string,
): TimelineRow {
  const { command, kind, name, key, parent, child, step, executions, by, reason, items } = draft;
  const failed = spans.filter(({ kind: one }) => one === "failed").length;
  return {
    command,
    kind,
    name: key === undefined ? name : promiseNameOf({ promiseId: name, key }),
    ...(key !== undefined && { key }),
    state,
    spans: spans.map((span) => spanOf(span, showError)),
    ...(parent !== undefined && { parent }),
    ...(child !== undefined && { child }),
    ...(step !== undefined && { step }),
    attempts: Math.max(1, executions.at(-1)?.attempt ?? 0, failed),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(by !== undefined && { by }),
    ...(reason !== undefined && { reason }),
    ...(items !== undefined && {
      progress: { done: items.done, total: items.total, failed: items.failed, running },
    }),
  };
}

function spanOf(
  { kind, from, to, until, attempt, execution, worker, error }: RawSpan,
  showError: ShowError,
): TimelineSpan {
  const shown = error === undefined ? undefined : showError(error);
  return {
    kind,
    from: isoOf(from),
    ...(to !== undefined && { to: isoOf(to) }),
    ...(until !== undefined && { until: isoOf(until) }),
    ...(attempt !== undefined && { attempt }),
    ...(execution !== undefined && { execution }),
    ...(worker !== undefined && { worker }),
    ...(shown !== undefined && { error: shown }),
  };
}

export function isoOf(at: number): string {
  return new Date(at).toISOString();
}
