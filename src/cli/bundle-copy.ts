// Bundle copy: a run of a bundle, as a mirror takes it. What the lines say was checked before (check-bundle.C1); here their words are
// compared with those that this version knows, because every command will read them.
//
// bundle-copy.B1. Of a live run a bundle has no queue. The timers that its journal has open are put in as rows, so that `show` says what
//   the run waits for; the journal itself tells the rest.

import { RepriseError } from "../base/index.ts";
import {
  decodeData,
  hasEnded,
  QueueItemState,
  RUN_STATUSES,
  timerDueAt,
  type ArrivalKind,
  type AttemptRecord,
  type Entry,
  type RunRecord,
} from "../kernel/index.ts";
import type { BundleReport } from "../receipts/index.ts";
import type { CopiedPage, CopiedRun } from "../stores/maintenance/index.ts";

const KINDS: readonly string[] = ["workflow", "graph", "flow"] satisfies RunRecord["kind"][];
/** By their numbers in `arrivals.kind`. */
const ARRIVAL_KINDS: readonly ArrivalKind[] = ["value", "skip", "failure"];
const OUTCOMES: readonly string[] = ["failed", "lost", "returned"] satisfies AttemptRecord["outcome"][];

/** Refuses a bundle without payloads, and one with words that this version does not know. */
export async function copyOfBundle(report: BundleReport, file: string): Promise<CopiedRun> {
  const { run, form, journal, chain, statement, entries: head } = report;
  const { id, generation } = run;
  if (form !== "full" || journal === undefined || chain === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${file} is a ${form} bundle: it proves what ran, and has no payloads to show or replay. Check it with \`reprise verify\`, or ask its maker for one made with --full.`,
      { details: { run: id, form } },
    );
  const refuse = (what: string): never => {
    throw new RepriseError("BUNDLE_DAMAGED", `Run ${id} of ${file} has ${what}, which this version does not know.`, {
      details: { run: id },
    });
  };
  if (!KINDS.includes(run.kind)) refuse(`the kind ${run.kind}`);
  if (!RUN_STATUSES.includes(run.status)) refuse(`the status ${run.status}`);
  const { parent, ...row } = run;
  let evidence: string | undefined;
  for await (const { part, text } of report.parts()) if (part === "evidence") evidence = text;
  const record: CopiedRun["record"] = {
    ...row,
    parentCommand: parent?.command,
    head,
    chain,
    endedAt: run.endedAt,
    errorCode: run.errorCode,
    runtime: (statement?.runtimes ?? []).map((runtime) => JSON.stringify(runtime)).join("\n"),
    evidence,
  };
  return {
    id,
    generation,
    record,
    parent: parent && { id: parent.run, generation: parent.generation },
    number: undefined,
    turn: undefined,
    entries: () => journal.pages(),
    async *rows() {
      for await (const { part, text } of report.parts()) {
        if (part === "attempts") yield attemptRow(text, refuse);
        else if (part === "uses") yield* usesRows(text, refuse);
      }
      if (!hasEnded(run.status)) yield await openTimers(journal.pages());
    },
  };
}

type Refuse = (what: string) => never;

/** Of a text that may be anything: the caller checks each of them. */
function fieldsOf<T extends object>(text: string): T {
  try {
    return (JSON.parse(text) ?? {}) as T;
  } catch {
    return {} as T;
  }
}

/** The mirror replaces the number of the run. */
const RUN = 0;

function attemptRow(text: string, refuse: Refuse): CopiedPage {
  const { step, at, execution, attempt, seq, outcome, ...more } = fieldsOf<AttemptRecord>(text);
  const { worker = null, startedAt = null, data = null } = more;
  const numbers = [at, execution, attempt, seq, startedAt ?? 0];
  const texts = [step, worker ?? "", data ?? ""];
  const isKnown = texts.every((one) => typeof one === "string") && numbers.every(Number.isSafeInteger);
  if (!isKnown || !OUTCOMES.includes(outcome)) return refuse("an attempt of another form");
  const row = { run: RUN, step, at, execution, attempt, seq, outcome, worker, started_at: startedAt, data };
  return { table: "run_attempts", rows: [row] };
}

interface UsesText {
  readonly node: string;
  readonly required: number;
  readonly completed: number;
  readonly queued?: number;
  readonly inputs: readonly {
    readonly edge: string;
    readonly index: number;
    readonly kind: ArrivalKind;
    readonly seq: number;
  }[];
}

/** Counters of a flow's nodes, and where their inputs came from (receipts/read-run.ts). */
function* usesRows(text: string, refuse: Refuse): Generator<CopiedPage> {
  const { node, required, completed, queued = null, inputs } = fieldsOf<UsesText>(text);
  const isKnown = typeof node === "string" && [required, completed, queued ?? 0].every(Number.isSafeInteger);
  if (!isKnown || !Array.isArray(inputs)) return refuse("counters of another form");
  const none = { window: null, first_seq: null, per_entry: null };
  yield { table: "readiness", rows: [{ run: RUN, node, required, completed, queued, ...none }] };
  yield {
    table: "arrivals",
    rows: (inputs as readonly unknown[]).map((input) => {
      const { edge, index, kind, seq } = (input ?? {}) as UsesText["inputs"][number];
      const number = ARRIVAL_KINDS.indexOf(kind);
      if (typeof edge !== "string" || number < 0 || !Number.isSafeInteger(index) || !Number.isSafeInteger(seq))
        return refuse("inputs of another form");
      return { run: RUN, target: node, edge, idx: index, kind: number, seq };
    }),
  };
}

/** bundle-copy.B1 */
async function openTimers(pages: AsyncIterable<readonly Entry[]>): Promise<CopiedPage> {
  const open = new Map<string, Entry>();
  for await (const page of pages)
    for (const entry of page) {
      if (entry.type === "TimerStarted") open.set(entry.command, entry);
      else if (entry.type === "TimerFired" || entry.type === "TimerCancelled") open.delete(entry.command);
      // The code starts again what it still waits for.
      else if (entry.type === "RunRetried") open.clear();
    }
  return {
    table: "queue",
    rows: [...open.values()].map(({ command, seq, at, data }) => ({
      run: RUN,
      item: command,
      kind: "timer",
      name: "",
      priority: 0,
      available_at: timerDueAt(decodeData("TimerStarted", data), at),
      seq,
      attempt: 0,
      state: QueueItemState.delayed,
      token: null,
      worker: null,
      takeovers: 0,
      failures: null,
      queue: null,
      key: null,
      executions: null,
      leased_at: null,
    })),
  };
}
