// Time travel: the commands checkpoints, fork and diff.

import { Option, type Command } from "commander";
import { action, collect, examples, positiveNumber, SHOW_SECRETS, wholeNumber } from "../command.ts";
import type { CheckpointsCommandOptions } from "../checkpoints.ts";
import type { DiffCommandOptions } from "../diff.ts";
import type { ForkCommandOptions } from "../fork.ts";

/** A value may contain a comma, so each answer is one option. */
function collectAnswer(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

export function addTimeTravelCommands(program: Command): void {
  program.commandsGroup("Time travel:");

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
    .description("Start a new run from a step or a command of another run, optionally with other answers")
    .argument("<id>", "id of the run to fork")
    .option("--step <number>", "step of a graph to fork from", wholeNumber)
    .option("--label <name>", "fork from the latest step with this label")
    .option(
      "--at <command>",
      "what to answer again: a command of a workflow ('Task(3)', or Task:3), a node of a flow, or input",
    )
    .option("--node <name>", "fork a graph from the step before the first execution of this node")
    .option("--call <name[:nth]>", "fork before the nth call with this name, such as think:2")
    .option("--answer <command=json>", "another answer for a command or a node; may be repeated", collectAnswer)
    .addOption(
      new Option("--effects <how>", "execute what follows, or take it from the run (default: live)").choices([
        "live",
        "recorded",
      ]),
    )
    .option("--model <name=model>", "another model for a name in the code; may be repeated", collect)
    .option("--generation <number>", "generation of a workflow to fork (default: the latest)", wholeNumber)
    .option("--patch <json>", 'new channel values as JSON, such as \'{"draft":"shorter"}\'')
    .option("--patch-file <file>", "read the patch from a file; - reads standard input")
    .option("--id <id>", "id of the new run (default: random); the same fork returns the same run")
    .option("--tag <tag>", "comma-separated tags", collect)
    .option(
      "--file <file>",
      "module with the definition: validates the patch of a graph and the answers; a flow needs it",
    )
    .addHelpText(
      "after",
      examples(
        "fork agent-7 --step 12",
        "fork order-7 --at 'Task(3)'",
        "fork order-7 --answer 'Task(3)={\"paid\":false}' --effects recorded",
        'fork agent-7 --label asked --patch \'{"draft":"shorter"}\' --id a-8',
        "fork agent-7 --step 12 --patch-file patch.json --file agent.ts",
      ),
    )
    .action(action(async (id: string, options: ForkCommandOptions) => (await import("../fork.ts")).fork(id, options)));

  program
    .command("diff")
    .description("Compare two runs by step, command or node; exit code 1 if they differ")
    .argument("<id>", "run id")
    .argument("<other>", "id of the run to compare with")
    .option("--limit <count>", "maximum number of differing steps, commands or nodes", positiveNumber, 20)
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText("after", examples("diff agent-7 agent-8", "diff agent-7 agent-7-b --json | jq .firstDivergence"))
    .action(
      action(async (id: string, other: string, options: DiffCommandOptions) =>
        (await import("../diff.ts")).diff(id, other, options),
      ),
    );
}
