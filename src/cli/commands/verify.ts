// Verify: the commands replay and verify.

import { Option, type Command } from "commander";
import type { CheckOptions } from "../check-code.ts";
import { action, examples, GENERATION, wholeNumber } from "../command.ts";

const FILE = "module that exports the run's workflow or graph, and its tasks";

export function addVerifyCommands(program: Command): void {
  program.commandsGroup("Verify:");

  program
    .command("replay")
    .description("Check that the current code matches a run's journal; writes nothing")
    .argument("<id>", "run id")
    .argument("<file>", FILE)
    .option("--generation <number>", GENERATION, wholeNumber)
    .addOption(
      new Option(
        "--mode <mode>",
        "full: use recorded results only; resume: continue live from a checkpoint of a graph, on an in-memory copy",
      )
        .choices(["full", "resume"])
        .default("full"),
    )
    .option("--from <step>", "checkpoint to resume from (default: latest)", wholeNumber)
    .option("--label <name>", "checkpoint to resume from, by its label")
    .option("--lenient", "report every difference instead of stopping at the first one")
    .option("--live <node...>", "repeat the calls of these nodes and compare the results with the journal")
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
    .description("Check a run's journal against its hash chain, then replay it")
    .argument("<id>", "run id")
    .argument("<file>", FILE)
    .option("--generation <number>", GENERATION, wholeNumber)
    .addHelpText("after", examples("verify order-7 order.ts", "verify order-7 order.ts --json"))
    .action(
      action(async (id: string, file: string, options: CheckOptions) =>
        (await import("../check-code.ts")).checkCode("verify", id, file, options),
      ),
    );
}
