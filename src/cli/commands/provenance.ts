// Provenance: the commands why, uses and export.

import { Option, type Command } from "commander";
import { action, examples, GENERATION, helpNotes, positiveNumber, wholeNumber } from "../command.ts";
import type { ExportOptions, ProvenanceOptions } from "../provenance.ts";

const KEY = "key of a value or of a claim, or run:<id>";
const LIMIT = 100;

export function addProvenanceCommands(program: Command): void {
  program.commandsGroup("Provenance:");

  for (const [what, description] of [
    ["why", "Trace what led to a value, nearest first"],
    ["uses", "Trace what followed from a value, nearest first"],
  ] as const)
    program
      .command(what)
      .description(description)
      .argument("<key>", KEY)
      .option("--run <id>", "search the family of this run (default: the run of run:<id>)")
      .option("--sites", "search what all sites have published, in the home folder, instead of the store")
      .option("--snapshot <id>", "with --sites: as it was at this snapshot")
      .option("--depth <number>", "greatest distance (default: any)", positiveNumber)
      .option("--limit <count>", "maximum number of lines", positiveNumber, LIMIT)
      .addHelpText(
        "after",
        examples(`${what} run:order-7`, `${what} 6232d194…4b41 --run order-7 --json`, `${what} run:order-7 --sites`),
      )
      .addHelpText(
        "after",
        helpNotes("\nThe family of a run: its generations and children, and their parents and origins of forks."),
      )
      .action(
        action(async (key: string, options: ProvenanceOptions) =>
          (await import("../provenance.ts")).trace(what, key, options),
        ),
      );

  program
    .command("export")
    .description("Print the provenance of a run for other tools, as JSON lines")
    .argument("<id>", "run id")
    .addOption(
      new Option("--format <format>", "prov: W3C PROV-JSON; slsa: SLSA provenance v1; openlineage: OpenLineage events")
        .choices(["prov", "slsa", "openlineage"])
        .makeOptionMandatory(),
    )
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--origin <name>", "who says so: agent, builder or namespace (default: the origin of your key, or local)")
    .addHelpText(
      "after",
      examples("export order-7 --format prov", "export order-7 --format slsa --origin edge7/56475aa75463474c"),
    )
    .action(
      action(async (id: string, options: ExportOptions) => (await import("../provenance.ts")).exportRun(id, options)),
    );
}
