// The claims of the demo, checked against the journal and the calls that the outside received.

import type { JournalEntry } from "reprise";

export interface Call {
  readonly run: string;
  readonly step: string;
  readonly attempt: number;
  readonly key: string;
  readonly process: number;
}

export interface Proof {
  readonly claim: string;
  readonly holds: boolean;
  readonly seen: string;
  /** More lines, one per step. */
  readonly details?: readonly string[];
}

const TERMINAL = /(?:Completed|Failed|Fired|Cancelled|Resolved|Rejected|TimedOut)$/;

/** Every command of the run has one entry that settles it, and only one. */
export function committedOnce(entries: readonly JournalEntry[]): Proof {
  const endings = new Map<string, number>();
  for (const { command, type } of entries)
    if (command !== undefined) endings.set(command, (endings.get(command) ?? 0) + (TERMINAL.test(type) ? 1 : 0));
  const wrong = [...endings].filter(([, count]) => count !== 1).map(([command, count]) => `${command}: ${count}`);
  return {
    claim: "commits happen exactly once",
    holds: endings.size > 0 && wrong.length === 0,
    seen: wrong.length === 0 ? `${endings.size} commands, one terminal entry each` : wrong.join(", "),
  };
}

export function gapFree(entries: readonly JournalEntry[], claimed: number): Proof {
  const holds = entries.length === claimed && entries.every(({ seq }, index) => seq === index + 1);
  return {
    claim: "the journal has no gap",
    holds,
    seen: holds ? `entries 1 to ${claimed}` : `${entries.length} entries, the run says ${claimed}`,
  };
}

/** Each step was called at least once, always with its own key; `expected` is the number of calls per step. */
export function calledWithStableKeys(calls: readonly Call[], expected: Readonly<Record<string, number>>): Proof {
  const steps = Map.groupBy(calls, ({ step }) => step);
  const details = [...steps].map(([step, made]) => {
    const keys = new Set(made.map(({ key }) => key));
    const processes = new Set(made.map((call) => call.process));
    const reason = processes.size > 1 ? "again after the crash" : made.length > 1 ? "again after a failed attempt" : "";
    const count = `${made.length} ${made.length === 1 ? "call " : "calls"}`;
    return `${step.padEnd(12)} ${count}  key ${[...keys].map((key) => `${key.slice(0, 12)}…`).join(", ")}  ${reason}`.trimEnd();
  });
  const keysPerStep = [...steps.values()].map((made) => new Set(made.map(({ key }) => key)));
  const stable = keysPerStep.every((keys) => keys.size === 1);
  const distinct = new Set(keysPerStep.flatMap((keys) => [...keys])).size === steps.size;
  const isAsExpected = Object.entries(expected).every(([step, count]) => steps.get(step)?.length === count);
  return {
    claim: "calls to the outside happen at least once and carry a stable key",
    holds: stable && distinct && isAsExpected && steps.size === Object.keys(expected).length,
    seen: `${calls.length} calls, ${steps.size} keys`,
    details,
  };
}
