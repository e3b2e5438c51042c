// Places in the user's code, as `src/checkout.ts:12`, read from a stack.

import { dirname, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const FRAMES = 50;
/** `at name (file:line:column)` or `at file:line:column` */
const FRAME = /^\s*at (?:.*? \()?((?:file:|node:|[A-Za-z]:)?[^:()]+):(\d+):\d+\)?$/;
/** The folder of this package's own code. */
const OURS = dirname(dirname(fileURLToPath(import.meta.url))) + sep;

interface Place {
  readonly path: string;
  readonly line: string;
}

/** The stack at this moment, `caller` and what it called left out. */
function placesAbove(caller: unknown): readonly Place[] {
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

const isInstalled = ({ path }: Place): boolean => path.includes("node_modules");

/** The nearest line of the user's own code that led to `caller`. */
export function placeOf(caller: unknown): string {
  const places = placesAbove(caller);
  const place = places.find((one) => !isInstalled(one)) ?? places[0];
  return place === undefined ? "an unknown place" : textOf(place);
}

/** The same, undefined where only our own code and that of packages led there. */
export function findUserPlace(caller: unknown): string | undefined {
  const place = placesAbove(caller).find((one) => !isInstalled(one) && !one.path.startsWith(OURS));
  return place && textOf(place);
}

function textOf({ path, line }: Place): string {
  const short = relative(process.cwd(), path);
  return `${short.startsWith("..") ? path : short}:${line}`;
}
