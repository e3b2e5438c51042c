// cancel, terminate, pause, resume, retry: by id, or all that a filter finds.

import type { Command } from "commander";
import { action, collect, examples } from "../command.ts";
import type { STEERINGS, SteerOptions } from "../steer.ts";

export function addSteeringCommands(program: Command): void {
  program.commandsGroup("Steer runs:");
  add(program, "cancel", "ask runs to stop; they may clean up first", "order-7", "--definition order --tag eu").option(
    "--reason <text>",
    "why, for the journal",
  );
  add(program, "terminate", "end runs at once, without asking their code", "order-7", "--definition order").option(
    "--reason <text>",
    "why, for the journal",
  );
  add(program, "pause", "let no further code go on; what is at work may finish", "order-7", "--definition order");
  add(program, "resume", "let stopped and paused runs go on with today's code", "order-7", "--status blocked");
  add(program, "retry", "let failed runs go on from where they failed, with today's code", "order-7", "--tag eu");
}

function add(
  program: Command,
  name: keyof typeof STEERINGS,
  description: string,
  ...samples: readonly string[]
): Command {
  return program
    .command(name)
    .description(description)
    .argument("[ids...]", "the ids of runs")
    .option("--definition <name>", "all runs of this definition")
    .option("--status <status>", "all runs that are in this status; several with commas", collect)
    .option("--tag <tag>", "all runs with this tag")
    .option("--all", "all runs there are")
    .option("--yes", "do not ask")
    .option("--dry-run", "only say which runs it would be")
    .addHelpText("after", examples(...samples.map((sample) => `${name} ${sample}`), `${name} --all --dry-run`))
    .action(
      action(async (ids: readonly string[], options: SteerOptions) =>
        (await import("../steer.ts")).steer(name, ids, options),
      ),
    );
}
