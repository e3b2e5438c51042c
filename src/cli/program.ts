// The program: its commands and options. Only what a command needs is loaded, so that `--help` comes at once.

import { readFileSync } from "node:fs";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import type { GlobalOptions } from "./global-options.ts";
import { isInterrupted, listenForSignals } from "./signals.ts";

const DEFAULT_STORE = "sqlite:reprise.db";

const EXIT_CODES = `
Exit codes:
    0  fine
    1  a problem was found, or the run failed
    2  wrong usage, bad input, or no such run
    3  the store is not there, or cannot be used
    4  the code and the journal disagree, or the run is stopped
  130  Ctrl-C (143: SIGTERM)`;

let exitCode = 0;

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError("Expected a whole number.");
  return value;
}

function collect(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, ...text.split(",").map((part) => part.trim())];
}

/** Runs a command with its options and those of the program. */
function action<A extends readonly unknown[]>(
  work: (...args: A) => Promise<number>,
): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const command = args.at(-1) as Command;
    const given = args.slice(0, -2);
    exitCode = await work(...([...given, { json: false, ...command.optsWithGlobals() }] as unknown as A));
  };
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ reprise ${line}`).join("\n")}`;
}

function createProgram(): Command {
  const program = new Command("reprise")
    .description("Looks after durable runs: starts them, shows them, replays them, checks the store.")
    .option(
      "--store <url>",
      "where the runs are (environment: REPRISE_STORE)",
      process.env["REPRISE_STORE"] || DEFAULT_STORE,
    )
    .option("--json", "one JSON value, or one per line, instead of text")
    .version(version(), "-V, --version")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeErr: () => {} })
    .addHelpText(
      "after",
      `${examples('run order.ts order \'{"id":"7"}\' --id order-7', "list --status failed,blocked", "show order-7", "doctor --store sqlite:shop.db")}\n${EXIT_CODES}`,
    );

  program
    .command("run")
    .description("start a run of a workflow, work on it, and print its output")
    .argument("<file>", "a module; every workflow and task it exports is registered")
    .argument("<workflow>", "the workflow's name")
    .argument("[input]", "its input, as JSON")
    .option("--id <id>", "the run's id; the same id and input again give the same run")
    .option("--input-file <file>", "read the input from a file, or - for standard input")
    .addHelpText(
      "after",
      examples(
        "run order.ts order '{\"cents\":4990}' --id order-7",
        "run order.ts order --input-file order.json",
        "run order.ts order --json | jq .output",
      ),
    )
    .action(
      action(async (file: string, name: string, input: string | undefined, options: GlobalOptions) =>
        (await import("./run.ts")).run(file, name, input, options),
      ),
    );

  program
    .command("list")
    .description("the runs of a store, newest first")
    .option("--status <status>", "only these; several with commas", collect)
    .option("--definition <name>", "only runs of this definition")
    .option("--tag <tag>", "only runs with this tag")
    .option("--limit <count>", "at most this many", wholeNumber, 50)
    .addHelpText("after", examples("list", "list --status failed,blocked --limit 10", "list --definition order --json"))
    .action(action(async (options: GlobalOptions & { limit: number }) => (await import("./list.ts")).list(options)));

  program
    .command("show")
    .description("one run: its timeline, what it waits for, why it failed")
    .argument("<id>", "the run's id")
    .addHelpText("after", examples("show order-7", "show order-7 --json | jq .waitsFor"))
    .action(action(async (id: string, options: GlobalOptions) => (await import("./show.ts")).show(id, options)));

  program
    .command("journal")
    .description("the entries of one run")
    .argument("<id>", "the run's id")
    .option("--after <seq>", "only entries after this one", wholeNumber, 0)
    .addHelpText("after", examples("journal order-7", "journal order-7 --after 100 --json"))
    .action(
      action(async (id: string, options: GlobalOptions & { after: number }) =>
        (await import("./journal.ts")).journal(id, options),
      ),
    );

  program
    .command("replay")
    .description("run today's code against a run's journal; nothing outside is called, nothing is written")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow and its tasks")
    .addHelpText("after", examples("replay order-7 order.ts"))
    .action(
      action(async (id: string, file: string, options: GlobalOptions) =>
        (await import("./replay.ts")).replay(id, file, options),
      ),
    );

  program
    .command("verify")
    .description("replay, and check the journal against its own hash chain")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow and its tasks")
    .addHelpText("after", examples("verify order-7 order.ts", "verify order-7 order.ts --json"))
    .action(
      action(async (id: string, file: string, options: GlobalOptions) =>
        (await import("./verify.ts")).verify(id, file, options),
      ),
    );

  program
    .command("doctor")
    .description("what the store is, and whether everything in it is as it must be")
    .addHelpText("after", examples("doctor", "doctor --store sqlite:shop.db --json"))
    .action(action(async (options: GlobalOptions) => (await import("./doctor.ts")).doctor(options)));

  return program;
}

function version(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** An error of the command line itself becomes one of ours. */
async function explain(error: CommanderError): Promise<Error> {
  const { RepriseError } = await import("../base/index.ts");
  const message = error.message.replace(/^error: /, "").replace(/\n/g, " ");
  return new RepriseError("USAGE", /[.)?]$/.test(message) ? message : `${message}.`);
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
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    // Ctrl-C closed the engine under the command; the signal decides how the process ends.
    if (isInterrupted()) return await new Promise<number>(() => {});
    const { fail } = await import("./output.ts");
    const json = args.includes("--json");
    if (!(error instanceof CommanderError)) return fail(error, json);
    const known = program.commands.find((command) => command.name() === args[0]);
    return fail(
      await explain(error),
      json,
      `\`reprise ${known === undefined ? "" : `${known.name()} `}--help\` shows how.`,
    );
  }
}
