// list, show, top, journal, graph: what is there and what happened.

import { Option, type Command } from "commander";
import { action, collect, examples, wholeNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { GraphOptions } from "../graph.ts";
import type { ShowOptions } from "../show.ts";
import type { TopOptions } from "../top.ts";

const GENERATION = "of a run that continued as new (default: the newest)";
const SHOW_SECRETS = "show what stands under names such as password, instead of [redacted]";

export function addLookingCommands(program: Command): void {
  program.commandsGroup("Look:");

  program
    .command("list")
    .description("the runs of a store, newest first")
    .option("--status <status>", "only these; several with commas", collect)
    .option("--definition <name>", "only runs of this definition")
    .addOption(new Option("--kind <kind>", "only runs of this kind").choices(["workflow", "graph", "flow"]))
    .option("--tag <tag>", "only runs with this tag")
    .option("--limit <count>", "at most this many", wholeNumber, 50)
    .addHelpText(
      "after",
      examples(
        "list",
        "list --status failed,blocked --limit 10",
        "list --kind graph",
        "list --definition order --json",
      ),
    )
    .action(action(async (options: GlobalOptions & { limit: number }) => (await import("../list.ts")).list(options)));

  program
    .command("show")
    .description("one run: its timeline, the steps of a graph or the nodes of a flow, what it waits for, why it failed")
    .argument("<id>", "the run's id")
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--show-secrets", SHOW_SECRETS)
    .option("--watch", "follow it until it ends or is stopped")
    .option("--steps <range>", "of a graph: these steps, such as 3, 10..20, ..5 or 90.. (default: the last 20)")
    .option("--timeline", "of a graph or a flow: its entries instead of a row per step or node")
    .option("--limit <count>", "of a flow: at most this many nodes (default: 50)", wholeNumber)
    .addHelpText(
      "after",
      examples(
        "show order-7",
        "show order-7 --watch",
        "show agent-7 --steps 10..20",
        "show import-7 --limit 200",
        "show order-7 --json | jq .waitsFor",
      ),
    )
    .action(action(async (id: string, options: ShowOptions) => (await import("../show.ts")).show(id, options)));

  program
    .command("top")
    .description("workers, queues and rates, what waits longest and what nobody takes, drawn anew every second")
    .option("--once", "only one look")
    .option("--interval <duration>", "how often it looks", "1 s")
    .addHelpText("after", examples("top", "top --once", "top --json --interval 10s"))
    .action(action(async (options: TopOptions) => (await import("../top.ts")).top(options)));

  program
    .command("journal")
    .description("the entries of one run")
    .argument("<id>", "the run's id")
    .option("--after <seq>", "only entries after this one", wholeNumber, 0)
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--save <file>", "write the whole journal as a golden run for expectReplay, secrets included")
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText(
      "after",
      examples("journal order-7", "journal order-7 --after 100 --json", "journal order-7 --save golden/order-7.json"),
    )
    .action(
      action(async (id: string, options: GlobalOptions & { after: number }) =>
        (await import("../journal.ts")).journal(id, options),
      ),
    );

  program
    .command("graph")
    .description("a picture of the graphs and flows in a file; with --run, what a run of one of them did")
    .argument("<file>", "a module that exports graphs or flows")
    .argument("[graph]", "only this one (default: all)")
    .addOption(
      new Option("--format <format>", "how it is written (default: mermaid)").choices(["mermaid", "dot", "json"]),
    )
    .option("--out <file>", "where to (default: standard output); must not exist")
    .option("--run <id>", "with what this run did: nodes that ran or were skipped, where it stands, where it failed")
    .option("--generation <number>", GENERATION, wholeNumber)
    .addHelpText(
      "after",
      examples(
        "graph agent.ts",
        "graph agent.ts --format dot | dot -Tsvg -o agent.svg",
        "graph agent.ts --run agent-7",
      ),
    )
    .action(
      action(async (file: string, name: string | undefined, options: GraphOptions) =>
        (await import("../graph.ts")).graph(file, name, options),
      ),
    );
}
