// list, show, journal: what is there and what happened.

import type { Command } from "commander";
import { action, collect, examples, wholeNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { ShowOptions } from "../show.ts";

const GENERATION = "of a run that continued as new (default: the newest)";
const SHOW_SECRETS = "show what stands under names such as password, instead of [redacted]";

export function addLookingCommands(program: Command): void {
  program.commandsGroup("Look:");

  program
    .command("list")
    .description("the runs of a store, newest first")
    .option("--status <status>", "only these; several with commas", collect)
    .option("--definition <name>", "only runs of this definition")
    .option("--tag <tag>", "only runs with this tag")
    .option("--limit <count>", "at most this many", wholeNumber, 50)
    .addHelpText("after", examples("list", "list --status failed,blocked --limit 10", "list --definition order --json"))
    .action(action(async (options: GlobalOptions & { limit: number }) => (await import("../list.ts")).list(options)));

  program
    .command("show")
    .description("one run: its timeline, what it waits for, why it failed")
    .argument("<id>", "the run's id")
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--show-secrets", SHOW_SECRETS)
    .option("--watch", "follow it until it ends or is stopped")
    .addHelpText("after", examples("show order-7", "show order-7 --watch", "show order-7 --json | jq .waitsFor"))
    .action(action(async (id: string, options: ShowOptions) => (await import("../show.ts")).show(id, options)));

  program
    .command("journal")
    .description("the entries of one run")
    .argument("<id>", "the run's id")
    .option("--after <seq>", "only entries after this one", wholeNumber, 0)
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText("after", examples("journal order-7", "journal order-7 --after 100 --json"))
    .action(
      action(async (id: string, options: GlobalOptions & { after: number }) =>
        (await import("../journal.ts")).journal(id, options),
      ),
    );
}
