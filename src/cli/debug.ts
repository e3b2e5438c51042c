// reprise debug: replays a run under Node's inspector, and stops before an entry is delivered.
//
// The debugger attaches to this process, and the code is loaded after that, so that its breakpoints apply. While the inspector
// waits or is paused, no JavaScript runs: a signal ends the process by its default action.

import inspector from "node:inspector";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { RepriseError } from "../base/index.ts";
import { guardMode, JournalReplayer, registryOf } from "../engine/index.ts";
import type { Entry } from "../kernel/index.ts";
import type { Delivered, OnDelivery } from "../workflow/index.ts";
import { CommandError } from "./command-error.ts";
import { beforeDelivery, beforeStart } from "./debug-stops.ts";
import type { GlobalOptions } from "./global-options.ts";
import { checkWorkflow, loadDefinitions } from "./load-definitions.ts";
import { shellWord } from "./next-command.ts";
import { findInMirrors } from "./mirrors.ts";
import type { OpenBundleOptions } from "./open-bundle.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { paintError, remark } from "./output.ts";
import { plain, showValue } from "./text.ts";
import { exitCodeOf } from "./verify.ts";
import { Bundles, isBundleFile, targetError } from "./verify-bundle.ts";
import { printReport } from "./verify-report.ts";
import { readStoredRun, verdictOfRun, type ReadRun, type VerifiedRun } from "./verify-stored-run.ts";

export interface DebugOptions extends GlobalOptions, OpenBundleOptions {
  readonly at?: string;
  /** Continue from there on a copy, with real calls. */
  readonly live?: boolean;
  readonly port?: number;
  readonly generation?: number;
  /** The run of a bundle that has several. */
  readonly id?: string;
}

const HOST = "127.0.0.1";
/** The port that debuggers try first. */
const USUAL_PORT = 9229;

export async function debug(target: string, file: string, options: DebugOptions): Promise<number> {
  const { at } = options;
  // Before the journal is read: the debugger would wait for a file that does not exist.
  if (!existsSync(file)) throw new RepriseError("USAGE", `There is no file ${resolve(file)}. Check the path.`);
  const run = await readTarget(target, options).catch((error: unknown) => {
    throw targetError(error, [target]);
  });
  if (at !== undefined) checkPlace(run, at);
  // Nothing to replay, or nothing that can be trusted: no debugger is needed to say so.
  if (run.fault !== undefined || (run.findings ?? []).length > 0) {
    const checks = { levels: LEVELS, replayer: undefined, codeFile: file };
    return conclude(await verdictOfRun(run, checks), options);
  }
  if (options.live === true) return (await import("./debug-live.ts")).debugLive(run, file, options);
  openInspector(options.port, file);
  try {
    const definitions = await loadDefinitions(file);
    checkWorkflow(definitions, run.definition, file);
    const stop = new Stop(at);
    using replayer = new JournalReplayer(registryOf(definitions), guardMode(undefined), stop.onDelivery);
    if (at === undefined) beforeStart(run);
    const verified = await verdictOfRun(run, { levels: LEVELS, replayer, codeFile: file });
    if (at !== undefined && !stop.isReached) remark(`The replay ended before ${plain(at)} was delivered.`);
    return await conclude(verified, options);
  } finally {
    inspector.close();
  }
}

async function conclude(verified: VerifiedRun, { json }: DebugOptions): Promise<number> {
  const exitCode = exitCodeOf(verified.verdict);
  await printReport([verified], exitCode, json, exitCodeOf);
  return exitCode;
}

/** Levels 0 and 3: who wrote it does not matter for debugging. */
export const LEVELS = [0, 3] as const;

async function readTarget(target: string, options: DebugOptions): Promise<ReadRun> {
  const { id, generation } = options;
  if (isBundleFile(target)) {
    await using bundles = await Bundles.open([target], [], LEVELS, options);
    return await bundles.find(target, id, generation);
  }
  if (id !== undefined) throw new RepriseError("USAGE", "--id selects a run of a bundle. Remove it.");
  const mirrored = await findInMirrors(options, target);
  return withStoreToRead(mirrored?.url ?? options.store, async (store) =>
    readStoredRun(store, await getRun(store, mirrored?.id ?? target, generation), LEVELS),
  );
}

/** Stops once, before the first entry of a command, or from a number on. */
class Stop {
  readonly #at: string | undefined;
  isReached = false;

  constructor(at: string | undefined) {
    this.#at = at;
  }

  readonly onDelivery: OnDelivery = (entry) => {
    if (this.#at === undefined || this.isReached || !isAt(entry, this.#at)) return;
    this.isReached = true;
    const { command, type, seq, data } = entry;
    remark(
      `${paintError(["cyan", "bold"], "stopped")} before ${seq === undefined ? "" : `entry ${seq}, `}${plain([type, command].join(" ").trim())}: ${showValue(data, 200)}`,
    );
    beforeDelivery(entry);
  };
}

function isAt({ seq, command }: Delivered, at: string): boolean {
  return /^\d+$/.test(at) ? seq !== undefined && seq >= Number(at) : command === at;
}

const SUGGESTED = 5;

/** Refuses a place that the journal does not have. A flow can also stop at a node whose value is in the entry of another. */
function checkPlace({ id, kind, entries }: ReadRun, at: string): void {
  if (kind === "flow" || entries.some((entry) => isAt(entry, at))) return;
  const commands = [...new Set(entries.map(({ command }: Entry) => command))].filter((one) => one !== "");
  const near = commands.filter((one) => one.startsWith(at.replace(/\(.*$/, "(")));
  const known = (near.length > 0 ? near : commands).slice(-SUGGESTED).join(", ");
  throw new CommandError(
    "USAGE",
    `--at: the journal of run ${id} has no entry of ${at}. It has ${entries.length} entries${known === "" ? "" : `, among them of ${known}`}.`,
    `reprise journal ${shellWord(id)}`,
  );
}

/** Waits until a debugger has attached. */
export function openInspector(port: number | undefined, file: string): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.removeAllListeners(signal);
  inspector.open(port ?? USUAL_PORT, HOST, false);
  if (inspector.url() === undefined && port === undefined) inspector.open(0, HOST, false);
  const url = inspector.url();
  if (url === undefined)
    throw new RepriseError("USAGE", `--port: the inspector cannot listen on port ${port}. Choose another one.`);
  const address = new URL(url);
  remark(
    [
      `${paintError(["cyan", "bold"], "debugger")} ${url}`,
      `  Chrome:   open chrome://inspect, add ${address.host} under "Configure", and choose this process`,
      `  VS Code:  run "Debug: Attach to Node Process", or add to launch.json:`,
      `            { "type": "node", "request": "attach", "name": "reprise debug", "port": ${address.port},`,
      `              "skipFiles": ["<node_internals>/**", "**/node_modules/reprise/**"] }`,
      `  terminal: node inspect ${address.host}`,
      `Set breakpoints in ${plain(file)} after attaching. Waiting for a debugger; press Ctrl-C to exit.`,
    ].join("\n"),
  );
  inspector.waitForDebugger();
}
