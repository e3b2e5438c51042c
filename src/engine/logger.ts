// The logger of an engine or a client: the one that the user passed, or one line per message on standard error.

import { inspect } from "node:util";
import { RepriseError } from "../base/index.ts";
import { LOG_LEVELS, silentLogger, type Logger, type LogLevel } from "../kernel/index.ts";

function line(level: LogLevel, message: string, data: object | undefined): void {
  const details =
    data === undefined || Object.keys(data).length === 0 ? "" : ` ${inspect(data, { breakLength: Infinity })}`;
  process.stderr.write(`reprise ${level}: ${message}${details}\n`);
}

/** Writes the lines of a level and of those above it. */
function stderrLogger(least: LogLevel): Logger {
  const from = LOG_LEVELS.indexOf(least);
  const logger: Logger = { ...silentLogger };
  for (const level of LOG_LEVELS.slice(from)) logger[level] = (message, data) => line(level, message, data);
  return logger;
}

/** The logger that the option `logger` asks for. */
export function checkLogger(logger: unknown = "info"): Logger {
  if (logger === false) return silentLogger;
  if (LOG_LEVELS.includes(logger as LogLevel)) return stderrLogger(logger as LogLevel);
  if (typeof logger !== "object" || logger === null)
    throw new RepriseError(
      "BAD_OPTIONS",
      `logger: expected an object with the functions info, warn and error, the lowest level to print (${LOG_LEVELS.map((level) => `"${level}"`).join(", ")}), or false, got ${inspect(logger, { depth: 0 })}.`,
    );
  const given = logger as Partial<Logger>;
  for (const level of ["info", "warn", "error"] as const)
    if (typeof given[level] !== "function")
      throw new RepriseError("BAD_OPTIONS", `The logger has no function ${level}.`);
  if (given.debug !== undefined && typeof given.debug !== "function")
    throw new RepriseError("BAD_OPTIONS", `logger.debug: expected a function, got ${typeof given.debug}.`);
  return given as Logger;
}
