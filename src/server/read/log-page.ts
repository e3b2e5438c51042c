// Log page: lines of a run in the memory of this process.

import type { LogLineBody } from "../../contract/index.ts";
import type { KeptLine, LogRing } from "../log-ring.ts";
import { isoOf } from "./view.ts";

export interface LogRange {
  readonly command: string | undefined;
  readonly after: string | undefined;
  readonly limit: number;
  readonly order: "first" | "last";
}

export interface LogPage {
  readonly items: readonly LogLineBody[];
  readonly next?: string;
}

export function readLogPage(logs: LogRing, run: string, { command, after, limit, order }: LogRange): LogPage {
  const from = logs.numberIn(after);
  const isLast = order === "last";
  const lines = logs
    .of(run)
    .filter(({ step }) => command === undefined || step === command)
    .filter(({ number }) => from === undefined || (isLast ? number < from : number > from));
  const page = (isLast ? lines.toReversed() : lines).slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map((line) => ({ cursor: logs.cursorOf(line), ...bodyOf(line) })),
    ...(last !== undefined && lines.length > page.length && { next: logs.cursorOf(last) }),
  };
}

function bodyOf({ at, level, message, step, data: { attempt, ...rest } }: KeptLine): Omit<LogLineBody, "cursor"> {
  return {
    at: isoOf(at),
    level,
    message,
    ...(step !== undefined && { command: step }),
    ...(typeof attempt === "number" && { attempt }),
    ...(Object.keys(rest).length > 0 && { data: rest }),
  };
}
