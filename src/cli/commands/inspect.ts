// Monitor: the commands list, show, top, journal and graph.

import { Option, type Command } from "commander";
import { action, collect, examples, GENERATION, SHOW_SECRETS, wholeNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { GraphOptions } from "../graph.ts";
import type { ListOptions } from "../list.ts";
import type { ShowOptions } from "../show.ts";
import type { TopOptions } from "../top.ts";

export function addMonitorCommands(program: Command): void {
  program.commandsGroup("Monitor:");

  program
    .command("list")
    .description("List runs, newest first")
    .argument("[mirror]", "list the runs of this mirror, such as prod/, instead of those of the store")
    .option("--status <status>", "comma-separated statuses", collect)
    .option("--definition <name>", "only runs of this definition")
    .addOption(new Option("--kind <kind>", "only runs of this kind").choices(["workflow", "graph", "flow"]))
    .option("--tag <tag>", "comma-separated tags; only runs with all of them", collect)
    .option("--created-after <time>", "created at this time or later: a date (UTC) or an age such as 2h")
    .option("--created-before <time>", "created before this time")
    .option("--ended-after <time>", "ended at this time or later")
    .option("--ended-before <time>", "ended before this time")
    .option("--error-code <code>", "failed with an error of this code, or of this name if it has no code")
    .option("--id-contains <text>", "only runs whose id contains this text")
    .option("--parent <id>", "only children of this run")
    .option("--limit <count>", "maximum number of runs", wholeNumber, 50)
    .addHelpText(
      "after",
      examples(
        "list",
        "list --status failed,blocked --limit 10",
        "list prod/",
        "list --kind graph",
        "list --definition order --json",
        "list --error-code CARD_DECLINED --ended-after 2h",
        "list --created-after 2026-11-01 --created-before 2026-11-02",
      ),
    )
    .action(
      action(async (mirror: string | undefined, options: ListOptions) =>
        (await import("../list.ts")).list(mirror, options),
      ),
    );

  program
    .command("show")
    .description("Show one run: its steps, what it waits for, and why it failed")
    .argument("<id>", "run id")
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--show-secrets", SHOW_SECRETS)
    .option("--watch", "follow the run until it ends or stops")
    .option("--steps <range>", "graph: steps to show, such as 3, 10..20, ..5 or 90.. (default: last 20)")
    .option(
      "--timeline",
      "graph or flow: show journal entries instead of steps or nodes; with --json, add the chart of the steps",
    )
    .option("--limit <count>", "flow: maximum number of nodes (default: 50)", wholeNumber)
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
    .description(
      "Show a live view of workers, queues, throughput, the oldest pending work and work no worker can claim (refreshes every second)",
    )
    .option("--once", "print one snapshot and exit")
    .option("--interval <duration>", "refresh interval", "1 s")
    .addHelpText("after", examples("top", "top --once", "top --json --interval 10s"))
    .action(action(async (options: TopOptions) => (await import("../top.ts")).top(options)));

  program
    .command("journal")
    .description("Print the journal entries of one run")
    .argument("<id>", "run id")
    .option("--after <seq>", "only entries after this sequence number", wholeNumber, 0)
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--save <file>", "save the journal, including secrets, as a golden run for expectReplay")
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
    .description("Draw the graphs and flows of a file; with --run, mark what a run did")
    .argument("<file>", "module that exports graphs or flows")
    .argument("[graph]", "graph or flow to draw (default: all)")
    .addOption(new Option("--format <format>", "output format (default: mermaid)").choices(["mermaid", "dot", "json"]))
    .option("--out <file>", "new file to write to (default: standard output)")
    .option("--run <id>", "mark the nodes that this run completed, skipped, failed or is running")
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
