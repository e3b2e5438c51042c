// replay, verify: today's code against what was recorded.

import type { Command } from "commander";
import type { CheckOptions } from "../check-code.ts";
import { action, examples, wholeNumber } from "../command.ts";

export function addProvingCommands(program: Command): void {
  program.commandsGroup("Prove:");

  program
    .command("replay")
    .description("run today's code against a run's journal; nothing outside is called, nothing is written")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow and its tasks")
    .option("--generation <number>", "of a run that continued as new (default: the newest)", wholeNumber)
    .addHelpText("after", examples("replay order-7 order.ts"))
    .action(
      action(async (id: string, file: string, options: CheckOptions) =>
        (await import("../check-code.ts")).checkCode("replay", id, file, options),
      ),
    );

  program
    .command("verify")
    .description("replay, and check the journal against its own hash chain")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow and its tasks")
    .option("--generation <number>", "of a run that continued as new (default: the newest)", wholeNumber)
    .addHelpText("after", examples("verify order-7 order.ts", "verify order-7 order.ts --json"))
    .action(
      action(async (id: string, file: string, options: CheckOptions) =>
        (await import("../check-code.ts")).checkCode("verify", id, file, options),
      ),
    );
}
