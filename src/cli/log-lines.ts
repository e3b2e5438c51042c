// Log lines: the output of `worker` and `dev`, with the time of day or as JSON. They are the answer of these commands, so
// they go to standard output.

import { systemClock } from "../base/index.ts";
import type { Logger } from "../kernel/index.ts";
import { withStoreOption } from "./next-command.ts";
import { paint } from "./output.ts";
import { jsonText, plain, showValue } from "./text.ts";

type Level = "info" | "warn" | "error";

const STYLES = { info: "dim", warn: "yellow", error: "red" } as const;

/** `14:03:05`, in local time. */
export function timeOfDay(ms: number): string {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

export interface LogLines extends Logger {
  /** Logs an event by its name, such as `worker.started`. */
  event(event: string, text: string, data: object): void;
}

export function logLines(json: boolean): LogLines {
  const write = (text: string): void => void process.stdout.write(`${text}\n`);
  const log =
    (level: Level) =>
    (message: string, data: object = {}) => {
      const now = systemClock.now();
      if (json) return write(jsonText({ at: new Date(now).toISOString(), level, message, data: safe(data) }));
      const details = Object.keys(data).length === 0 ? "" : ` ${paint("dim", showValue(data))}`;
      write(
        `${paint("dim", timeOfDay(now))} ${paint(STYLES[level], level.padEnd(5))} ${withStoreOption(plain(message))}${details}`,
      );
    };
  return {
    info: log("info"),
    warn: log("warn"),
    error: log("error"),
    event(event, text, data) {
      const now = systemClock.now();
      if (json) return write(jsonText({ at: new Date(now).toISOString(), level: "info", event, ...safe(data) }));
      write(`${paint("dim", timeOfDay(now))} ${text}`);
    },
  };
}

/** Log data can contain values that JSON cannot represent. */
function safe(data: object): object {
  try {
    return JSON.parse(
      JSON.stringify(data, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
    );
  } catch {
    return { text: showValue(data) };
  }
}
