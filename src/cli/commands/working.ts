// init, dev, worker, run: code at work.

import type { Command } from "commander";
import { action, collect, examples, positiveNumber, wholeNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { WorkerOptions } from "../worker.ts";

export function addWorkingCommands(program: Command): void {
  program.commandsGroup("Work:");

  program
    .command("init")
    .description("make a small project that runs: a workflow, its test, and what they need")
    .argument("[folder]", "where to; made if it is not there", ".")
    .addHelpText("after", examples("init my-app", "init"))
    .action(
      action(async (folder: string, options: GlobalOptions) => (await import("../init.ts")).init(folder, options)),
    );

  program
    .command("dev")
    .description("a worker that starts anew when a file changes, and says what runs do")
    .argument("<file>", "a module; every workflow, graph and task it exports is registered")
    .addHelpText("after", examples("dev workflows.ts", "dev workflows.ts --store sqlite:try.db"))
    .action(action(async (file: string, options: GlobalOptions) => (await import("../dev.ts")).dev(file, options)));

  program
    .command("dev-worker", { hidden: true })
    .argument("<file>")
    .action(
      action(async (file: string, options: GlobalOptions) =>
        (await import("../dev-worker.ts")).devWorker(file, options),
      ),
    );

  program
    .command("worker")
    .description("work on the runs of a store until told to stop (SIGTERM, Ctrl-C)")
    .argument("<file>", "a module; every workflow, graph and task it exports is registered")
    .option("--concurrency <count>", "how many tasks and operations run at once (default: 256)", positiveNumber)
    .option("--queues <names>", "only work of these queues; several with commas (default: all)", collect)
    .option("--labels <names>", "also work that has one of these labels; several with commas", collect)
    .option("--lease <duration>", "how long the work of a dead worker stays its own (default: 10 s)")
    .option("--grace <duration>", "how long work may take to finish when told to stop", "30 s")
    .option("--events", "also a line for everything that happens to runs")
    .addHelpText(
      "after",
      examples(
        "worker order.ts --store sqlite:shop.db",
        "worker order.ts --concurrency 64 --queues mail,default --json",
        "worker order.ts --labels gpu,eu",
      ),
    )
    .action(
      action(async (file: string, options: WorkerOptions) => (await import("../worker.ts")).worker(file, options)),
    );

  program
    .command("run")
    .description("start a run of a workflow or graph, work on it, and print its output")
    .argument("<file>", "a module; every workflow, graph and task it exports is registered")
    .argument("<workflow>", "the name of the workflow or graph")
    .argument("[input]", "its input, as JSON")
    .option("--id <id>", "the run's id; the same id and input again give the same run")
    .option("--input-file <file>", "read the input from a file, or - for standard input")
    .option("--tag <tag>", "a tag to find it by; several with commas", collect)
    .option("--priority <number>", "higher goes first", wholeNumber)
    .option("--delay <duration>", "begin this much later")
    .option("--deadline <duration>", "how long the whole run may take")
    .option("--detach", "only start it and print its id; the work is left to workers")
    .addHelpText(
      "after",
      examples(
        "run order.ts order '{\"cents\":4990}' --id order-7",
        "run order.ts order '{\"cents\":4990}' --detach",
        "run order.ts order --input-file order.json",
        "run order.ts order --json | jq .output",
      ),
    )
    .action(
      action(async (file: string, name: string, input: string | undefined, options: GlobalOptions) =>
        (await import("../run.ts")).run(file, name, input, options),
      ),
    );
}
