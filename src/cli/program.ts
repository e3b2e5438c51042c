// The program: its options and the groups of its commands. What a command does is loaded only when it runs, so that
// `--help` comes at once.

import { Command, CommanderError, Option } from "commander";
import { examples, exitCodeOfCommand } from "./command.ts";
import { addCaringCommands } from "./commands/caring.ts";
import { addHelpingCommands } from "./commands/helping.ts";
import { addLookingCommands } from "./commands/looking.ts";
import { addProvingCommands } from "./commands/proving.ts";
import { addQueueingCommands } from "./commands/queueing.ts";
import { addSchedulingCommands } from "./commands/scheduling.ts";
import { addSteeringCommands } from "./commands/steering.ts";
import { addTalkingCommands } from "./commands/talking.ts";
import { addTravellingCommands } from "./commands/travelling.ts";
import { addWorkingCommands } from "./commands/working.ts";
import { isInterrupted, listenForSignals } from "./signals.ts";
import { versionOfThis } from "./version.ts";

const DEFAULT_STORE = "sqlite:reprise.db";

const EXIT_CODES = `
Exit codes:
    0  fine
    1  a problem was found, the run failed, or two runs differ
    2  wrong usage, bad input, or no such run
    3  the store is not there, or cannot be used
    4  the code and the journal disagree, or the run is stopped
  130  Ctrl-C (143: SIGTERM)`;

export function createProgram(): Command {
  const program = new Command("reprise")
    .description("Looks after durable runs: starts them, shows them, steers them, proves them, checks the store.")
    .addOption(storeOption())
    .option(
      "--codec <file>",
      "a module that exports `codec`, for a store with encrypted payloads (environment: REPRISE_CODEC)",
      process.env["REPRISE_CODEC"] || undefined,
    )
    .option("--json", "one JSON value, or one per line, instead of text")
    .version(versionOfThis(), "-V, --version", "which version this is")
    .helpOption("-h, --help", "how to use it")
    .helpCommand(false)
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeErr: () => {} })
    .addHelpText(
      "after",
      `${examples('run order.ts order \'{"id":"7"}\' --id order-7', "list --status failed,blocked", "show order-7", "doctor --store sqlite:shop.db")}\n${EXIT_CODES}`,
    );
  addWorkingCommands(program);
  addLookingCommands(program);
  addTravellingCommands(program);
  addTalkingCommands(program);
  addSteeringCommands(program);
  addSchedulingCommands(program);
  addQueueingCommands(program);
  addProvingCommands(program);
  addCaringCommands(program);
  addHelpingCommands(program);
  return program;
}

/** What the environment says may hold a password, and is not shown. */
function storeOption(): Option {
  const option = new Option("--store <url>", "where the runs are (environment: REPRISE_STORE)");
  const given = process.env["REPRISE_STORE"];
  return given ? option.default(given, "REPRISE_STORE") : option.default(DEFAULT_STORE);
}

/** An error of the command line itself becomes one of ours. */
async function explain(error: CommanderError): Promise<Error> {
  const { RepriseError } = await import("../base/index.ts");
  const message = error.message.replace(/^error: /, "").replace(/\n/g, " ");
  return new RepriseError("USAGE", /[.)?]$/.test(message) ? message : `${message}.`);
}

/** The command that the first words of the line name: `schedule create`. */
function namedCommand(program: Command, args: readonly string[]): { readonly path: string; readonly command: Command } {
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

/** Runs one command line and answers the exit code. */
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
    // Ctrl-C closed the engine under the command; the signal decides how the process ends.
    if (isInterrupted()) return await new Promise<number>(() => {});
    const { fail } = await import("./output.ts");
    const json = args.includes("--json");
    if (!(error instanceof CommanderError)) return fail(error, json);
    const { path, command } = namedCommand(program, args);
    if (error.code === "commander.help") {
      command.outputHelp();
      return 2;
    }
    return fail(await explain(error), json, `\`reprise ${path === "" ? "" : `${path} `}--help\` shows how.`);
  }
}
