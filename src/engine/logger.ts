// The default logger: one readable line per message on standard error.

import { inspect } from "node:util";
import type { Logger } from "../kernel/index.ts";

function line(level: string, message: string, data: object | undefined): void {
  const details =
    data === undefined || Object.keys(data).length === 0 ? "" : ` ${inspect(data, { breakLength: Infinity })}`;
  process.stderr.write(`reprise ${level}: ${message}${details}\n`);
}

export const stderrLogger: Logger = {
  info: (message, data) => line("info", message, data),
  warn: (message, data) => line("warn", message, data),
  error: (message, data) => line("error", message, data),
};
