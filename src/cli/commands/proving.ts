// replay, verify: today's code against what was recorded.

import { Option, type Command } from "commander";
import type { CheckOptions } from "../check-code.ts";
import { action, examples, wholeNumber } from "../command.ts";

export function addProvingCommands(program: Command): void {
  program.commandsGroup("Prove:");

  program
    .command("replay")
    .description("run today's code against a run's journal; nothing outside is called, nothing is written")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow or graph, and its tasks")
    .option("--generation <number>", "of a run that continued as new (default: the newest)", wholeNumber)
    .addOption(
      new Option(
        "--mode <mode>",
        "full: recordings only; resume: from a checkpoint of a graph on live, on a copy in memory",
      )
        .choices(["full", "resume"])
        .default("full"),
    )
    .option("--from <step>", "the checkpoint resume goes on from (default: the newest)", wholeNumber)
    .option("--label <name>", "the same, by its label")
    .option("--lenient", "tell all differences and go on with what was recorded, instead of stopping at the first")
    .option("--live <node...>", "make the calls of these nodes again and compare their answers with the recorded ones")
    .addHelpText(
      "after",
      examples(
        "replay order-7 order.ts",
        "replay ticket-1 agent.ts --lenient",
        "replay ticket-1 agent.ts --live think",
        "replay ticket-1 agent.ts --mode resume --from 3",
      ),
    )
    .action(
      action(async (id: string, file: string, options: CheckOptions) =>
        (await import("../check-code.ts")).checkCode("replay", id, file, options),
      ),
    );

  program
    .command("verify")
    .description("replay, and check the journal against its own hash chain")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow or graph, and its tasks")
    .option("--generation <number>", "of a run that continued as new (default: the newest)", wholeNumber)
    .addHelpText("after", examples("verify order-7 order.ts", "verify order-7 order.ts --json"))
    .action(
      action(async (id: string, file: string, options: CheckOptions) =>
        (await import("../check-code.ts")).checkCode("verify", id, file, options),
      ),
    );
}
