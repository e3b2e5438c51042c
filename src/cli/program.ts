// Program: the global options, the groups of commands and the exit code of one command line. The work of a command is
// loaded only when it runs, so that `--help` starts fast.

import { Command, CommanderError, Option } from "commander";
import { examples, exitCodeOfCommand, helpNotes, helpWidth } from "./command.ts";
import { addMaintenanceCommands } from "./commands/maintenance.ts";
import { addMemoCommands } from "./commands/memo.ts";
import { addFederationCommands } from "./commands/federation.ts";
import { addHelpCommands } from "./commands/help.ts";
import { addMonitorCommands } from "./commands/inspect.ts";
import { addReceiptCommands } from "./commands/receipts.ts";
import { addVerifyCommands } from "./commands/verify.ts";
import { addProvenanceCommands } from "./commands/provenance.ts";
import { addQueueCommands } from "./commands/queues.ts";
import { addScheduleCommands } from "./commands/schedules.ts";
import { addControlCommands } from "./commands/control.ts";
import { addMirrorCommands } from "./commands/mirrors.ts";
import { addMessageCommands } from "./commands/messages.ts";
import { addTokenCommands } from "./commands/tokens.ts";
import { addTimeTravelCommands } from "./commands/time-travel.ts";
import { addRunCommands } from "./commands/run.ts";
import { DEFAULT_STORE } from "./global-options.ts";
import { isInterrupted, listenForSignals } from "./signals.ts";
import { packageVersion } from "./version.ts";

const MORE = `
Run reprise <command> --help for arguments, options and examples.

Exit codes:
    0  success
    1  a problem was found, the run failed, two runs differ, or an object that the command names was not changed
    2  invalid usage, invalid input, or unknown run
    3  the store is missing or cannot be used
    4  the code does not match the journal, or the run is stopped
    5  verify: damaged, or two histories of one run
    6  verify: unsigned, or signed by a key that is not admitted
    7  verify: incomplete
    8  verify: inconclusive
    9  verify: a pure step returns another result
  130  Ctrl-C
  143  SIGTERM (a worker that finished its running steps: 0)`;

/** Commander leaves descriptions in one line if less room is left beside the names of the options. */
const MIN_WIDTH_TO_WRAP = 16;

export function createProgram(): Command {
  const program = new Command("reprise")
    .description("Start, inspect, control and verify durable workflow runs.")
    .addOption(storeOption())
    .option(
      "--codec <file>",
      "module that exports `codec`, for a store with encrypted payloads (env: REPRISE_CODEC)",
      process.env["REPRISE_CODEC"] || undefined,
    )
    .option("--home <folder>", "folder of the signing key, mirrors and peers (default: .reprise, env: REPRISE_HOME)")
    .option("--json", "print JSON: one value, or one per line")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .exitOverride()
    // Names only, so that the list fits 80 columns; the help of each command shows its arguments.
    .configureHelp({
      showGlobalOptions: true,
      subcommandTerm: (command) => command.name(),
      minWidthToWrap: MIN_WIDTH_TO_WRAP,
    })
    .configureOutput({ writeErr: () => {}, getOutHelpWidth: helpWidth })
    .addHelpText(
      "after",
      examples(
        'run order.ts order \'{"id":"7"}\' --id order-7',
        "list --status failed,blocked",
        "show order-7",
        "doctor --store sqlite:shop.db",
      ),
    )
    .addHelpText("after", helpNotes(MORE));
  addRunCommands(program);
  addMonitorCommands(program);
  addMirrorCommands(program);
  addTimeTravelCommands(program);
  addMessageCommands(program);
  addControlCommands(program);
  addScheduleCommands(program);
  addQueueCommands(program);
  addVerifyCommands(program);
  addReceiptCommands(program);
  addProvenanceCommands(program);
  addFederationCommands(program);
  addTokenCommands(program);
  addMaintenanceCommands(program);
  addMemoCommands(program);
  addHelpCommands(program);
  return program;
}

/** REPRISE_STORE can contain a password, so the help does not print its value. */
function storeOption(): Option {
  const option = new Option("--store <url>", "store URL (env: REPRISE_STORE)");
  const given = process.env["REPRISE_STORE"];
  return given ? option.default(given, "REPRISE_STORE") : option.default(DEFAULT_STORE);
}

/** Converts commander's error to a USAGE error. */
async function usageErrorOf(error: CommanderError): Promise<Error> {
  const { RepriseError } = await import("../base/index.ts");
  const message = error.message.replace(/^error: /, "").replace(/\n/g, " ");
  return new RepriseError("USAGE", /[.)?]$/.test(message) ? message : `${message}.`);
}

/** The command that the first words name, such as `schedule create`. */
function findCommand(program: Command, args: readonly string[]): { readonly path: string; readonly command: Command } {
  const names: string[] = [];
  let command = program;
  for (const word of args) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) break;
    names.push(word);
    command = next;
  }
  return { path: names.join(" "), command };
}

/** Runs one command line and returns the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  listenForSignals();
  const program = createProgram();
  if (args.length === 0) {
    program.outputHelp();
    return 2;
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCodeOfCommand();
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    // After Ctrl-C the signal handler ends the process; errors of the command that it closed do not count.
    if (isInterrupted()) return await new Promise<number>(() => {});
    const { fail } = await import("./output.ts");
    const json = args.includes("--json");
    const { path, command } = findCommand(program, args);
    // `dev` starts `dev-worker`, which has no help of its own.
    const known = path === "dev-worker" ? "dev" : path;
    const help = `reprise ${known === "" ? "" : `${known} `}--help`;
    if (!(error instanceof CommanderError)) return fail(error, json, { help });
    if (error.code === "commander.help") {
      command.outputHelp();
      return 2;
    }
    return fail(await usageErrorOf(error), json, { help });
  }
}
