// Replay: code against its journal.
//
// Bursts of immediates: microtasks drain between two immediates, so each delivery still gets its full drain (E2).
// Measured on 10,000 entries: bursts of 256 26 ms, one chained immediate per entry 43 ms.

import { encode, REDACTED, type Timers } from "../base/index.ts";
import type { Entry } from "../kernel/index.ts";
import type { WorkflowBody } from "./definition.ts";
import { encodeInput, errorText } from "./entry-data.ts";
import { Execution } from "./execution.ts";
import type { ExecutionHost, RunFacts, Stop } from "./execution-host.ts";
import { indexJournal, type Recorded, type RecordedEntry } from "./recorded.ts";

const BURST = 256;

/** A macrotask: everything the code can do with what it has is done when this resolves. */
export function drain(timers: Timers): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}

/** Starts the code and gives it every recorded completion, in order. */
export async function driveThrough(execution: Execution, recorded: Recorded, timers: Timers): Promise<void> {
  execution.start();
  await drain(timers);
  const { deliveries, lives } = recorded;
  let life = 0;
  const beginLives = (before: number): void => {
    for (; (lives[life]?.seq ?? before) < before; life += 1) execution.emitted?.beginLife(lives[life]!.emitted);
  };
  for (let from = 0; from < deliveries.length && execution.stop === undefined; from += BURST) {
    for (const { type, command, data, at, seq } of deliveries.slice(from, from + BURST))
      timers.soon(() => {
        beginLives(seq);
        execution.deliver(type, command, data, at);
      });
    // Queued behind the burst, so it runs when the whole burst has been delivered and drained.
    await drain(timers);
  }
  beginLives(Number.POSITIVE_INFINITY);
  execution.checkLeftovers();
}

/** Where code and journal part: `expected` is what the code does, `actual` what the journal has, as in the messages. */
export interface ReplayDifference {
  /** The command, the step or the entry. */
  readonly where: string;
  readonly message: string;
  readonly expected: unknown;
  readonly actual: unknown;
  /** Of a graph: the step, the node and its attempt, as far as they are known. */
  readonly step?: number;
  readonly node?: string;
  readonly attempt?: number;
}

/** How the code ended in a replay. */
export type ReplayEnd =
  | { readonly status: "completed"; readonly output: unknown }
  | { readonly status: "failed"; readonly error: unknown }
  /** `waiting`: for what only time or somebody outside can bring; in the mode `resume`. */
  | { readonly status: "cancelled" | "continued" | "waiting" };

/** The verdict of a replay. */
export type Replay =
  | {
      readonly status: "same";
      readonly digest: string;
      /** What a lenient replay found and passed over. */
      readonly warnings?: readonly ReplayDifference[];
      /** How many calls of nodes were answered from the journal, and how many were made. */
      readonly calls?: { readonly served: number; readonly live: number };
      /** Absent while the run has not ended. */
      readonly end?: ReplayEnd;
    }
  | ({ readonly status: "mismatch" } & ReplayDifference);

/** What is replayed, and how. */
export interface ReplayedPast {
  readonly facts: RunFacts;
  readonly entries: readonly Entry[];
  readonly chain: string;
  readonly host: ExecutionHost;
  readonly timers: Timers;
  /** Default true. False: differences are noted, and what was recorded goes on. */
  readonly strict?: boolean;
  /** Nodes whose calls are made again, to compare their answers. */
  readonly live?: readonly string[];
}

/** The stop of an execution as a verdict. */
function stopped({ where, message, expected, actual }: Stop): Replay {
  return { status: "mismatch", where, message, expected, actual };
}

/** How a run ended, as text two executions can be compared by; stacks differ between machines and are left out. */
function endText(end: RecordedEntry): string {
  if (end.type === "RunCompleted") return `completed ${encodeInput(end.data["output"]) ?? ""}`;
  if (end.type === "RunContinued")
    return continuedText(Number(end.data["version"]), end.data["given"] as string | undefined);
  if (end.type === "RunFailed") return `failed ${encode(end.data["error"])}`;
  return "cancelled";
}
function continuedText(version: number, given: string | undefined): string {
  return `continued with version ${version} ${given ?? ""}`;
}
function outcomeText(execution: Execution): string | undefined {
  const { outcome } = execution;
  if (outcome === undefined) return undefined;
  if (execution.endStatus === "cancelled") return "cancelled";
  if (execution.endStatus === "failed" && outcome.status === "continued")
    return `failed ${errorText(execution.cancellation.error)}`;
  if (outcome.status === "continued") return continuedText(outcome.version, outcome.given);
  if (outcome.status === "returned")
    try {
      return `completed ${encodeInput(outcome.value, execution.limits) ?? ""}`;
    } catch (notData) {
      // The run failed of it too.
      return `failed ${errorText(notData)}`;
    }
  return `failed ${errorText(outcome.error)}`;
}

/** Where a secret was taken out of what was recorded, anything may stand: whoever replays need not know it. */
export function isSameText(actual: string | undefined, recorded: string): boolean {
  if (actual === recorded) return true;
  if (actual === undefined || !recorded.includes(REDACTED)) return false;
  const pieces = recorded.split(REDACTED).map((piece) => RegExp.escape(piece));
  return new RegExp(`^${pieces.join("[^]*?")}$`).test(actual);
}

/** What differs between the end of the code and the one recorded. */
export function endDifference(execution: Execution, end: RecordedEntry | undefined): ReplayDifference | undefined {
  // Terminated: the code was not asked, and ended nowhere.
  if (end === undefined || end.data["terminated"] === true) return undefined;
  const actual = outcomeText(execution);
  if (isSameText(actual, endText(end))) return undefined;
  return {
    where: `entry ${end.seq}`,
    message: actual === undefined ? "The code did not end where the journal does." : "The code ended differently.",
    expected: actual,
    actual: endText(end),
  };
}

export function replayEndOf({ outcome, endStatus }: Execution): ReplayEnd | undefined {
  if (outcome === undefined) return undefined;
  if (endStatus === "cancelled" || outcome.status === "continued")
    return { status: endStatus === "cancelled" ? "cancelled" : "continued" };
  if (outcome.status === "returned") return { status: "completed", output: outcome.value };
  return { status: "failed", error: outcome.error };
}

/** Replays a journal against today's code; nothing outside is called, nothing is written. */
export async function replayJournal(body: WorkflowBody, past: ReplayedPast): Promise<Replay> {
  const { facts, entries, chain, host, timers, strict = true } = past;
  if (body.replay !== undefined) return body.replay(past);
  const recorded = indexJournal(entries);
  const same = { status: "same", digest: `sha256:${chain}` } as const;
  // Cancelled before it began: there is nothing the code did.
  if (recorded.end?.data["begun"] === false) return same;
  const execution = new Execution(body, facts, recorded, strict ? "strict" : "per-type", host);
  await driveThrough(execution, recorded, timers);
  if (execution.stop !== undefined) return stopped(execution.stop);
  const ended = endDifference(execution, recorded.end);
  if (ended !== undefined) return { status: "mismatch", ...ended };
  if (execution.leftovers.length === 0) return same;
  const warnings = execution.leftovers.map((message) => ({
    where: "the end",
    message,
    expected: undefined,
    actual: undefined,
  }));
  return { ...same, warnings };
}
