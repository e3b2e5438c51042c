// reprise show: one run — where it stands, what happened, what it waits for, what to do when it is stuck.

import { formatMs } from "../base/index.ts";
import { hasEnded, journalEntryOf, type Entry, type RunRecord } from "../kernel/index.ts";
import { getRun } from "./open-store.ts";
import { EXIT, lineWidth, paint, print, printJson } from "./output.ts";
import { looking, type LookOptions } from "./shown-store.ts";
import { isoOf, paintStatus, runJson, troubleOf, type Trouble } from "./shown-run.ts";
import { stepsOf, type Step } from "./steps.ts";
import { countOf, plain, plainLines, showValue } from "./text.ts";
import { renderTimeline } from "./timeline.ts";

/** Longer journals are shown by their beginning and their end. */
const SHOWN_AT_EACH_END = 200;

export async function show(id: string, options: LookOptions): Promise<number> {
  return looking(options, async (store) => {
    const record = await getRun(store, id);
    const entries = await store.readJournal(record.run, 0, record.head);
    const steps = stepsOf(entries.map(journalEntryOf));
    const trouble = troubleOf(record, entries.at(-1));
    if (options.json) await printJson(showJson(record, entries, steps, trouble));
    else await printRun(record, entries, steps, trouble, store.now());
    return EXIT.ok;
  });
}

function showJson(
  record: RunRecord,
  entries: readonly Entry[],
  steps: readonly Step[],
  trouble: Trouble | undefined,
): object {
  const payload = (entry: Entry | undefined, field: string): unknown =>
    entry === undefined ? null : ((JSON.parse(entry.data) as Record<string, unknown>)[field] ?? null);
  return {
    ...runJson(record),
    generation: record.generation,
    priority: record.priority,
    unread: record.unread,
    runtime: JSON.parse(record.runtime) as unknown,
    input: payload(entries[0], "input"),
    output: record.status === "completed" ? payload(entries.at(-1), "output") : null,
    error: trouble ?? null,
    steps: steps.map(stepJson),
    waitsFor: waitsFor(record, steps).map(stepJson),
  };
}

function stepJson(step: Step): object {
  return {
    command: step.command,
    kind: step.kind,
    name: step.name,
    startedAt: isoOf(step.startedAt),
    endedAt: isoOf(step.endedAt),
    ending: step.ending ?? null,
    attempts: step.attempts,
    until: isoOf(step.until),
  };
}

function waitsFor(record: RunRecord, steps: readonly Step[]): readonly Step[] {
  return hasEnded(record.status) ? [] : steps.filter(({ endedAt }) => endedAt === undefined);
}

async function printRun(
  record: RunRecord,
  entries: readonly Entry[],
  steps: readonly Step[],
  trouble: Trouble | undefined,
  now: number,
): Promise<void> {
  const { definition, version, status, createdAt, endedAt, head, tags, unread } = record;
  const time = endedAt === undefined ? `for ${formatMs(now - createdAt)}` : `in ${formatMs(endedAt - createdAt)}`;
  await print(
    `${paint("bold", plain(record.id))}  ${plain(definition)} v${version}  ${paintStatus(paint, status)} ${time}`,
  );
  await print(
    paint(
      "dim",
      `started ${isoOf(createdAt)}  ${countOf(head, "entry", "entries")}  sha256:${record.chain.slice(0, 16)}…`,
    ),
  );
  if (tags.length > 0) await print(paint("dim", `tags ${tags.map(plain).join(", ")}`));
  if (unread > 0) await print(paint("yellow", `${countOf(unread, "message", "messages")} came too late to be read`));
  await print("");
  const options = { width: lineWidth(), paint };
  const lines = renderTimeline(entries.map(journalEntryOf), options);
  for (const line of middleLeftOut(lines)) await print(line);
  const waits = waitLines(record, steps, now);
  if (waits.length > 0) await print(`\n${paint("bold", "waits for")}\n${waits.map((line) => `  ${line}`).join("\n")}`);
  if (trouble !== undefined) await printTrouble(record, trouble);
}

function middleLeftOut(lines: readonly string[]): readonly string[] {
  const left = lines.length - 2 * SHOWN_AT_EACH_END;
  if (left <= 0) return lines;
  const note = paint("dim", `             … ${left} lines left out; \`reprise journal\` has them all …`);
  return [...lines.slice(0, SHOWN_AT_EACH_END), note, ...lines.slice(-SHOWN_AT_EACH_END)];
}

function waitLines(record: RunRecord, steps: readonly Step[], now: number): string[] {
  switch (record.status) {
    case "completed":
    case "failed":
    case "cancelled":
    case "continued":
    case "blocked":
    case "determinism_violation":
      return [];
    case "queued":
    case "expected":
    case "paused":
    case "running":
    case "waiting": {
      const open = waitsFor(record, steps).map((step) => waitLine(step, now));
      if (record.status === "queued") open.unshift(`a worker that has the definition ${plain(record.definition)}`);
      else if (record.status === "running") open.unshift("a worker is at it");
      else if (record.status === "waiting" && open.length === 0)
        open.push("nothing that can come: its code awaits something that ctx did not give; see `reprise doctor`");
      else if (record.status === "paused") open.unshift("somebody who resumes it");
      return open;
    }
  }
}

function waitLine({ kind, name, command, until, attempts }: Step, now: number): string {
  const shown = paint("bold", plain(name));
  const left = until === undefined ? "" : untilText(until.getTime() - now);
  const place = paint("dim", command);
  switch (kind) {
    case "task":
      return `task ${shown}: a worker that has it ${place}`;
    case "child":
      return `child ${shown} ${place}`;
    case "sleep":
      return `${left === "" ? "a timer" : `a timer, ${left}`} ${place}`;
    case "promise":
      return `promise ${shown} from outside${left === "" ? "" : `, runs out ${left}`} ${place}`;
    case "signal":
      return `signal ${shown}${left === "" ? "" : `, runs out ${left}`} ${place}`;
    case "operation":
      return `operation ${shown}, attempt ${attempts + 1} ${place}`;
  }
}

function untilText(ms: number): string {
  return ms > 0 ? `in ${formatMs(ms)}` : `due since ${formatMs(-ms)}`;
}

async function printTrouble(
  record: RunRecord,
  { code, message, next, where, expected, actual, stack }: Trouble,
): Promise<void> {
  await print(`\n${paint(["red", "bold"], `${record.status} ${code}:`)} ${plain(message)}`);
  if (where !== null) await print(`  ${paint("dim", "where:")} ${plain(where)}`);
  if (code === "DETERMINISM_VIOLATION") {
    await print(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
    await print(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
  }
  const userFrames = frames(stack ?? "");
  if (userFrames !== "") await print(paint("dim", userFrames));
  await print(`  ${paint("dim", "next:")} ${next}`);
}

const OWN_FILES = new URL("..", import.meta.url).href;

/** The user's own frames; how the engine called them helps nobody here. */
function frames(stack: string): string {
  return plainLines(stack)
    .split("\n")
    .filter((frame) => /^\s+at /.test(frame) && !frame.includes(OWN_FILES) && !frame.includes("(node:"))
    .slice(0, 6)
    .map((frame) => `    ${frame.trim()}`)
    .join("\n");
}
