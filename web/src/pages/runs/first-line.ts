// First line of the runs: what happens now, what is wrong first, and the command that helps.

import type { RunCounts } from "../../../../src/contract/definition.ts";
import { count, plural } from "../../format.ts";

export interface FirstLine {
  readonly status: string;
  readonly lead: string;
  readonly text: string;
  readonly command?: string;
}

/** `alive`: how many workers are alive; undefined: not known yet. */
export function firstLineOf({ counts, atLeast }: RunCounts, alive: number | undefined): FirstLine {
  const { queued, running, waiting, paused, blocked, determinism_violation: differing, failed } = counts;
  const number = (status: keyof typeof counts): string =>
    `${count(counts[status])}${atLeast.includes(status) ? "+" : ""}`;
  const live = queued + running + waiting;
  if (alive === 0 && live > 0)
    return {
      status: "failed",
      lead: "No worker is alive.",
      text: `${plural(live, "run continues", "runs continue")} when one starts; nothing is lost.`,
      command: "reprise worker <file>",
    };
  if (blocked + differing > 0)
    return {
      status: "stopped",
      lead: `${plural(blocked + differing, "run is", "runs are")} stopped.`,
      text:
        differing > 0
          ? "The code and the journal do not agree. No wrong step was taken."
          : "The engine cannot continue and keeps the evidence. No wrong step was taken.",
      command: "reprise list --status blocked,determinism_violation",
    };
  const rest = [
    running > 0 && waiting > 0 && `${number("waiting")} wait`,
    queued > 0 && `${number("queued")} queued`,
    paused > 0 && `${number("paused")} paused`,
    failed > 0 && `${number("failed")} failed`,
  ].filter((one) => one !== false);
  const text = rest.length === 0 ? "" : `${rest.join(", ")}.`;
  if (running > 0)
    return { status: "running", lead: `${number("running")} in progress.`, text, command: "reprise top" };
  if (waiting > 0)
    return {
      status: "waiting",
      lead: `${plural(waiting, "run waits", "runs wait")}.`,
      text,
      command: "reprise list --status waiting",
    };
  return {
    status: queued > 0 ? "queued" : "completed",
    lead: queued > 0 ? "No run is in progress." : "Nothing runs.",
    text,
    ...(queued + failed > 0 && { command: `reprise list --status ${queued > 0 ? "queued" : "failed"}` }),
  };
}
