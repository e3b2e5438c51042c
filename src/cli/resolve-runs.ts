// Resolve runs: replaces the names of runs on a command line by the store and the id, where they mean runs of a mirror. So every
// command that reads works on `prod/order-7` without knowing about mirrors, and every command that writes refuses it.

import type { Command } from "commander";
import { RepriseError } from "../base/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { findInMirrors, mirrorPath, refuseBundle, refuseChange, refuseFork, type MirrorRun } from "./mirrors.ts";
import { paintError, remark } from "./output.ts";
import { plain } from "./text.ts";

/** Commands that write nothing to the store of the run. */
const READING: ReadonlySet<string> = new Set([
  "show",
  "journal",
  "graph",
  "checkpoints",
  "diff",
  "query",
  "stream",
  "replay",
  "verify",
  "debug",
  "why",
  "uses",
  "export",
]);

export function isReading(command: Command): boolean {
  return READING.has(command.name());
}

/** What else to do instead of a command that a mirror refuses. */
const REFUSALS: Readonly<Record<string, typeof refuseChange>> = { bundle: refuseBundle, fork: refuseFork };

/** Arguments that are ids of runs. */
const RUN_ARGUMENTS: ReadonlySet<string> = new Set(["id", "other", "ids"]);

/** The key of `why` and `uses` may be a run: `run:prod/order-7`. */
const RUN_KEY = "run:";

export interface Resolved {
  readonly args: readonly unknown[];
  readonly options: GlobalOptions;
}

/** The arguments and options with which the command reads the run; as given if no run of a mirror is meant. */
export async function resolveRuns(
  command: Command,
  args: readonly unknown[],
  options: GlobalOptions & { readonly run?: string },
): Promise<Resolved> {
  const argument = (index: number): string => command.registeredArguments[index]?.name() ?? "";
  const isRun = (index: number): boolean => RUN_ARGUMENTS.has(argument(index));
  const key = args.findIndex((arg, index) => argument(index) === "key" && String(arg).startsWith(RUN_KEY));
  if (key !== -1 && options.run === undefined && isReading(command)) {
    const run = String(args[key]).slice(RUN_KEY.length);
    const resolved = await resolveRuns(command, args, { ...options, run });
    const { run: id = run } = resolved.options as { readonly run?: string };
    return { ...resolved, args: args.with(key, `${RUN_KEY}${id}`) };
  }
  const found = new Map<string, MirrorRun>();
  const names = args.flatMap((arg, index) => (isRun(index) ? [arg].flat() : []));
  for (const name of [...names, options.run])
    if (typeof name === "string" && name !== "") {
      const run = await findInMirrors(options, name);
      if (run !== undefined) found.set(name, run);
    }
  if (found.size === 0) return { args, options };
  const [first] = [...found.values()];
  if (!isReading(command)) {
    const home = await homeUrl(options, first!.mirror);
    throw (REFUSALS[command.name()] ?? refuseChange)(first!, home);
  }
  return replaced(isRun, args, options, found);
}

async function homeUrl(options: GlobalOptions, mirror: string): Promise<string | undefined> {
  const { readMirrorInfo } = await import("../stores/maintenance/index.ts");
  return readMirrorInfo(mirrorPath(options, mirror))?.url;
}

function replaced(
  isRun: (index: number) => boolean,
  args: readonly unknown[],
  options: GlobalOptions & { readonly run?: string },
  found: ReadonlyMap<string, MirrorRun>,
): Resolved {
  for (const [name, { id, mirror }] of found)
    if (name === id) remark(paintError("dim", `${plain(id)} is read from the mirror ${mirror}`));
  const idOf = (name: unknown): unknown =>
    Array.isArray(name) ? name.map(idOf) : (found.get(name as string)?.id ?? name);
  const runs = [...args.filter((_, index) => isRun(index)).flat(), ...(options.run === undefined ? [] : [options.run])];
  return {
    args: args.map((arg, index) => (isRun(index) ? idOf(arg) : arg)),
    options: {
      ...options,
      ...storesOf(runs.map((name) => found.get(name as string)?.url ?? options.store)),
      ...(options.run !== undefined && { run: idOf(options.run) as string }),
    },
  };
}

/** `store` is that of the first run; `otherStore` that of the second one, for `diff`. */
function storesOf(urls: readonly string[]): { readonly store: string; readonly otherStore?: string } {
  const [first = "", second = first] = urls;
  if (urls.length > 2 && new Set(urls).size > 1)
    throw new RepriseError("USAGE", "One command reads runs of one store or mirror. Name the others in a second one.");
  return { store: first, ...(second !== first && { otherStore: second }) };
}
