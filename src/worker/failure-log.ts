// FailureLog: one line for each failed run, and for each step whose attempts ran out.
//
// failure-log.F1. A failure is logged when its commit is durable, by the process that made the commit. A replay and a takeover of the
//   run log nothing again.
// failure-log.F2. A run without a parent that fails is an `error`. A failed step is a `warn`, and so is a failed child: the code that
//   waits for it may handle it, and if it does not, its own run fails with an `error`.
// failure-log.F3. An attempt that is retried logs nothing (the event `attempt.failed` reports it), nor does a node that was aborted
//   because another one failed.
// failure-log.F4. Lines are limited by definition and step (line-limiter.L1).

import { inspect } from "node:util";
import { decode, shellWord, type EpochMs, type Timers } from "../base/index.ts";
import {
  decodeData,
  type ClaimedItem,
  type CompleteWrite,
  type EndEntry,
  type ExecutionFacts,
  type Outcome,
  type RunNumber,
  type RunRecord,
  type TurnOutcome,
  type TurnWrite,
  type Write,
} from "../kernel/index.ts";
import { LineLimiter, type LogLine } from "../process/index.ts";

type Run = Pick<RunRecord, "run" | "id" | "definition" | "parent" | "parentCommand">;

/** An entry, or the message that becomes one. */
interface Failure {
  readonly type: string;
  readonly command: string;
  readonly data: string;
  readonly execution?: number | undefined;
  readonly ran?: ExecutionFacts | undefined;
}

const ERROR_LENGTH = 300;
/** How the text of a flow's node starts whose `catch` turned the error into its value. */
const CAUGHT = /^\{(?:"attempt":\d+,)?"caught":/;
const KINDS: Readonly<Record<string, string>> = { OperationFailed: "operation", TaskFailed: "task" };

export class FailureLog {
  readonly #log: LogLine;
  readonly #limiter: LineLimiter;
  /** Tasks that failed here, until their end is committed. */
  readonly #failedTasks = new Map<string, ClaimedItem>();

  constructor(log: LogLine, timers: Timers, now: () => EpochMs) {
    this.#log = (...line) => {
      try {
        log(...line);
      } catch {
        // The commit is durable: a logger that throws must not keep the worker from continuing with it.
      }
    };
    this.#limiter = new LineLimiter(timers, now, (count) =>
      this.#log("error", `${count} more failures of other runs and steps within a second. Next: \`reprise list\`.`, {
        count,
      }),
    );
  }

  /** The attempts of a task ran out; its end is not committed yet. */
  onTaskFailed(item: ClaimedItem): void {
    this.#failedTasks.set(`${item.run} ${item.item}`, item);
  }

  /** A turn was written. */
  onTurn(run: Run, { entries, finished }: TurnWrite, { status }: TurnOutcome): void {
    if (status !== "committed" && status !== "already_committed") return;
    for (const entry of entries) {
      const { type, command } = entry;
      if (type === "OperationFailed" || type === "NodeFailed") this.#logStep(run.id, run.definition, entry);
      // Other tasks of the run failed on other workers, which logged them.
      else if (type === "TaskFailed" && finished.some(({ item }) => item === command)) this.#logTask(run.run, entry);
      // A commit that the store already had does not end the run here.
      else if (type === "RunFailed" && status === "already_committed") this.onEnded(run, entry);
    }
  }

  /** Nodes of a flow have ended. */
  onNodes(run: Run, { entries }: CompleteWrite): void {
    for (const entry of entries)
      if (entry.type === "NodeFailed" || (entry.type === "NodeCompleted" && CAUGHT.test(entry.data)))
        this.#logStep(run.id, run.definition, entry);
  }

  /** The end of a task was written without the run's turn. */
  onWrote(write: Write, outcome: Outcome): void {
    if (write.write !== "end-item" || write.arrival.type !== "TaskFailed") return;
    const { run, item, arrival } = write;
    if ((outcome as { readonly status: string }).status === "committed")
      this.#logTask(run, { ...arrival, command: item });
    else this.#failedTasks.delete(`${run} ${item}`);
  }

  onEnded(run: Run, { type, data }: Pick<EndEntry, "type" | "data">): void {
    if (type !== "RunFailed") return;
    const { id, definition } = run;
    const isChild = run.parent !== undefined && run.parentCommand !== undefined;
    const level = isChild ? "warn" : "error";
    const isAdmitted = this.#limiter.admit(`${level} run of ${definition}`, (count) =>
      this.#log(level, `${count} more runs of ${definition} failed within a second. Next: ${listOf(definition)}.`, {
        definition,
        count,
      }),
    );
    if (!isAdmitted) return;
    const { error, undone } = decodeData("RunFailed", data);
    // The retry of a parent includes its failed children.
    const retry = isChild || undone === true ? "" : `, then \`reprise retry ${shellWord(id)}\``;
    this.#log(level, `Run ${id} of ${definition} failed: ${sentenceOf(error)} Next: ${showOf(id)}${retry}.`, {
      run: id,
      definition,
      ...codeOf(error),
    });
  }

  /** Logs what was held back. */
  flush(): void {
    this.#limiter.flush();
  }

  #logTask(run: RunNumber, failure: Failure): void {
    const key = `${run} ${failure.command}`;
    const item = this.#failedTasks.get(key);
    if (item === undefined) return;
    this.#failedTasks.delete(key);
    this.#logStep(item.runId, item.definition, failure, item);
  }

  #logStep(id: string, definition: string, { type, command, data, execution, ran }: Failure, task?: ClaimedItem): void {
    const read = decode(data) as {
      readonly attempt?: number;
      readonly caught?: unknown;
      readonly error?: unknown;
      readonly operationName?: string;
    };
    const error = read.error ?? read.caught;
    const { code } = codeOf(error);
    if (code === "NODE_STOPPED") return;
    // Items of a spread are one step.
    const name = task?.name ?? read.operationName ?? command.replace(/\[\d+\]$/, "");
    const what = `${KINDS[type] ?? "node"} ${name}`;
    const number = execution ?? ran?.execution ?? task?.execution;
    const isAdmitted = this.#limiter.admit(`${what} of ${definition}`, (count) =>
      this.#log(
        "warn",
        `${count} more failures of ${what} of ${definition} within a second. Next: ${listOf(definition)}.`,
        {
          definition,
          name,
          count,
        },
      ),
    );
    if (!isAdmitted) return;
    this.#log("warn", `Run ${id}: ${what} failed: ${sentenceOf(error)} Next: ${showOf(id)}.`, {
      run: id,
      definition,
      step: command,
      name,
      attempt: (read.attempt ?? 0) + 1,
      ...(number !== undefined && { execution: number }),
      ...(code !== undefined && { code }),
    });
  }
}

function codeOf(error: unknown): { readonly code?: string } {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? { code } : {};
}

/** The message of an error on one line, with a period at its end. */
function sentenceOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : inspect(error, { depth: 1 });
  const line = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  if (line.length > ERROR_LENGTH) return `${line.slice(0, ERROR_LENGTH).toWellFormed()}….`;
  return /[.!?…]$/.test(line) ? line : `${line}.`;
}

function showOf(id: string): string {
  return `\`reprise show ${shellWord(id)}\``;
}

function listOf(definition: string): string {
  return `\`reprise list --definition ${shellWord(definition)} --status failed\``;
}
