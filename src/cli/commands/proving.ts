// replay, verify: today's code against what was recorded.

import type { Command } from "commander";
import { action, examples } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";

export function addProvingCommands(program: Command): void {
  program.commandsGroup("Prove:");

  program
    .command("replay")
    .description("run today's code against a run's journal; nothing outside is called, nothing is written")
    .argument("<id>", "the run's id")
    .argument("<file>", "a module that exports the run's workflow and its tasks")
    .addHelpText("after", examples("replay order-7 order.ts"))
    .action(
      action(async (id: string, file: string, options: GlobalOptions) =>
        (await import("../check-code.ts")).checkCode("replay", id, file, options),
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
        (await import("../check-code.ts")).checkCode("verify", id, file, options),
      ),
    );
}
