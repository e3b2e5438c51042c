// Time travel: the commands checkpoints, fork and diff, for runs of graphs.

import type { Command } from "commander";
import { action, collect, examples, positiveNumber, SHOW_SECRETS, wholeNumber } from "../command.ts";
import type { CheckpointsCommandOptions } from "../checkpoints.ts";
import type { DiffCommandOptions } from "../diff.ts";
import type { ForkCommandOptions } from "../fork.ts";

export function addTimeTravelCommands(program: Command): void {
  program.commandsGroup("Time travel (graphs):");

  program
    .command("checkpoints")
    .description("List the committed steps of a run, or show one with its state and calls")
    .argument("<id>", "run id")
    .option("--after <step>", "only steps after this one", wholeNumber)
    .option("--limit <count>", "maximum number of steps", positiveNumber)
    .option("--step <number>", "show this step in full", wholeNumber)
    .option("--label <name>", "show the latest step with this label in full")
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText(
      "after",
      examples(
        "checkpoints agent-7",
        "checkpoints agent-7 --label asked",
        "checkpoints agent-7 --step 12 --json > step-12.json",
      ),
    )
    .action(
      action(async (id: string, options: CheckpointsCommandOptions) =>
        (await import("../checkpoints.ts")).checkpoints(id, options),
      ),
    );

  program
    .command("fork")
    .description("Start a new run from a committed step, optionally with patched state")
    .argument("<id>", "id of the run to fork")
    .option("--step <number>", "step to fork from", wholeNumber)
    .option("--label <name>", "fork from the latest step with this label")
    .option("--patch <json>", 'new channel values as JSON, such as \'{"draft":"shorter"}\'')
    .option("--patch-file <file>", "read the patch from a file; - reads standard input")
    .option("--id <id>", "id of the new run (default: random); the same fork returns the same run")
    .option("--tag <tag>", "comma-separated tags", collect)
    .option("--file <file>", "module with the graph; its channels validate the patch")
    .addHelpText(
      "after",
      examples(
        "fork agent-7 --step 12",
        'fork agent-7 --label asked --patch \'{"draft":"shorter"}\' --id a-8',
        "fork agent-7 --step 12 --patch-file patch.json --file agent.ts",
      ),
    )
    .action(action(async (id: string, options: ForkCommandOptions) => (await import("../fork.ts")).fork(id, options)));

  program
    .command("diff")
    .description("Compare two runs step by step; exit code 1 if they differ")
    .argument("<id>", "run id")
    .argument("<other>", "id of the run to compare with")
    .option("--limit <count>", "maximum number of differing steps", positiveNumber, 20)
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText("after", examples("diff agent-7 agent-8", "diff agent-7 agent-7-b --json | jq .firstDivergence"))
    .action(
      action(async (id: string, other: string, options: DiffCommandOptions) =>
        (await import("../diff.ts")).diff(id, other, options),
      ),
    );
}
