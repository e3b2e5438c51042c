// Source locations of user code, such as `src/checkout.ts:12`, read from a stack.

import { dirname, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const FRAMES = 50;
/** `at name (file:line:column)` or `at file:line:column` */
const FRAME = /^\s*at (?:.*? \()?((?:file:|node:|[A-Za-z]:)?[^:()]+):(\d+):\d+\)?$/;
/** The folder of this package's code. */
const PACKAGE_DIR = dirname(dirname(fileURLToPath(import.meta.url))) + sep;

interface SourceLocation {
  readonly path: string;
  readonly line: string;
}

/** The current stack above `caller`. */
function locationsAbove(caller: unknown): readonly SourceLocation[] {
  const holder: { stack?: unknown } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(holder, caller as (...args: never[]) => unknown);
  const { stack } = holder;
  Error.stackTraceLimit = limit;
  const lines = typeof stack === "string" ? stack.split("\n") : [];
  return lines.flatMap((text) => {
    const [, file, line] = FRAME.exec(text) ?? [];
    if (file === undefined || line === undefined || file.startsWith("node:")) return [];
    return [{ path: file.startsWith("file:") ? fileURLToPath(file) : file, line }];
  });
}

const isInstalled = ({ path }: SourceLocation): boolean => path.includes("node_modules");

/** The nearest line of user code that called `caller`. */
export function sourceLocationOf(caller: unknown): string {
  const locations = locationsAbove(caller);
  const location = locations.find((one) => !isInstalled(one)) ?? locations[0];
  return location === undefined ? "an unknown location" : textOf(location);
}

/** The same; undefined when only this package and installed packages are on the stack. */
export function findUserLocation(caller: unknown): string | undefined {
  const location = locationsAbove(caller).find((one) => !isInstalled(one) && !one.path.startsWith(PACKAGE_DIR));
  return location && textOf(location);
}

function textOf({ path, line }: SourceLocation): string {
  const short = relative(process.cwd(), path);
  return `${short.startsWith("..") ? path : short}:${line}`;
}
