// checkpoints, fork, diff: the steps of a graph's run, another run from one of them, and where two runs part.

import type { Command } from "commander";
import { action, collect, examples, positiveNumber, wholeNumber } from "../command.ts";
import type { CheckpointsCommandOptions } from "../checkpoints.ts";
import type { DiffCommandOptions } from "../diff.ts";
import type { ForkCommandOptions } from "../fork.ts";

const SHOW_SECRETS = "show what stands under names such as password, instead of [redacted]";

export function addTravellingCommands(program: Command): void {
  program.commandsGroup("Travel in time (graphs):");

  program
    .command("checkpoints")
    .description("the committed steps of a graph's run; one of them with its state and its calls")
    .argument("<id>", "the run's id")
    .option("--after <step>", "only steps after this one", wholeNumber)
    .option("--limit <count>", "at most this many", positiveNumber)
    .option("--step <number>", "this one, with everything it holds", wholeNumber)
    .option("--label <name>", "the newest with this label, with everything it holds")
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
    .description("another run from a committed step, with a changed state where that is wanted")
    .argument("<id>", "the run to fork")
    .option("--step <number>", "the step it begins from", wholeNumber)
    .option("--label <name>", "the newest step with this label")
    .option("--patch <json>", 'values that replace those of the step, by channel: \'{"draft":"shorter"}\'')
    .option("--patch-file <file>", "the same from a file, - for standard input")
    .option("--id <id>", "the id of the fork (default: a random one); the same fork again is the same run")
    .option("--tag <tag>", "its tags; several with commas", collect)
    .option("--file <file>", "the graph's code: its channels say which values they take")
    .addHelpText(
      "after",
      examples(
        "fork agent-7 --step 12",
        'fork agent-7 --label asked --patch \'{"draft":"shorter"}\' --id agent-7-shorter',
        "fork agent-7 --step 12 --patch-file patch.json --file agent.ts",
      ),
    )
    .action(action(async (id: string, options: ForkCommandOptions) => (await import("../fork.ts")).fork(id, options)));

  program
    .command("diff")
    .description("where two runs of a graph part, step by step; exit code 1 when they do")
    .argument("<id>", "a run")
    .argument("<other>", "the run it is compared with")
    .option("--limit <count>", "at most this many steps that differ", positiveNumber, 20)
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText("after", examples("diff agent-7 agent-8", "diff agent-7 agent-7-shorter --json | jq .firstDivergence"))
    .action(
      action(async (id: string, other: string, options: DiffCommandOptions) =>
        (await import("../diff.ts")).diff(id, other, options),
      ),
    );
}
