// resolve, reject: messages into a run, with or without its code.

import type { Command } from "commander";
import { action, examples } from "../command.ts";
import type { TalkOptions } from "../talk.ts";

const FILE = ["--file <file>", "the module with the run's workflow: name and value are checked against it"] as const;

export function addTalkingCommands(program: Command): void {
  program.commandsGroup("Talk to runs:");

  program
    .command("resolve")
    .description("give a promise of a run its value")
    .argument("<id>", "the run's id")
    .argument("<promise>", "the name of the promise")
    .argument("[value]", "its value, as JSON")
    .option("--input-file <file>", "read the value from a file, or - for standard input")
    .option(...FILE)
    .addHelpText(
      "after",
      examples("resolve order-7 approval '{\"ok\":true}'", "resolve order-7 approval '{\"ok\":true}' --file order.ts"),
    )
    .action(
      action(async (id: string, name: string, value: string | undefined, options: TalkOptions) =>
        (await import("../talk.ts")).resolve(id, name, value, options),
      ),
    );

  program
    .command("reject")
    .description("give a promise of a run an error instead of a value")
    .argument("<id>", "the run's id")
    .argument("<promise>", "the name of the promise")
    .argument("<message>", "what the error says")
    .option(...FILE)
    .addHelpText("after", examples('reject order-7 approval "out of stock"'))
    .action(
      action(async (id: string, name: string, message: string, options: TalkOptions) =>
        (await import("../talk.ts")).reject(id, name, message, options),
      ),
    );
}
