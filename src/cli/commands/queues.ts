// Queues: the commands queue list, pause, resume and limit.

import type { Command } from "commander";
import { action, examples, positiveNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { LimitOptions } from "../queue.ts";

export function addQueueCommands(program: Command): void {
  const queue = program.command("queue").helpCommand(false).description("Manage queues (list, pause, resume, limit)");

  queue
    .command("list")
    .description("List queues with their pending work, running work and limits")
    .addHelpText("after", examples("queue list"))
    .action(action(async (options: GlobalOptions) => (await import("../queue.ts")).listQueues(options)));

  for (const [name, description, work] of [
    ["pause", "Pause a queue: workers claim nothing from it; running work continues", "pauseQueue"],
    ["resume", "Resume a paused queue", "resumeQueue"],
  ] as const)
    queue
      .command(name)
      .description(description)
      .argument("<queue>", "queue name")
      .addHelpText("after", examples(`queue ${name} mail`))
      .action(
        action(async (given: string, options: GlobalOptions) => (await import("../queue.ts"))[work](given, options)),
      );

  queue
    .command("limit")
    .description("Set the limits of a queue for all workers, until deployed code declares new ones")
    .argument("<queue>", "queue name")
    .option("--concurrency <count>", "maximum running at once", positiveNumber)
    .option("--rate <count/time>", "maximum started per time, such as 100/1m")
    .option("--key-concurrency <count>", "maximum running at once for each key", positiveNumber)
    .option("--key-rate <count/time>", "maximum started per time for each key")
    .option("--none", "remove all limits")
    .addHelpText("after", examples("queue limit mail --concurrency 4 --rate 100/1m", "queue limit mail --none"))
    .action(
      action(async (given: string, options: LimitOptions) => (await import("../queue.ts")).limitQueue(given, options)),
    );
}
