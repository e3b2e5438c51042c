// queue list, pause, resume, limit.

import type { Command } from "commander";
import { action, examples, positiveNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { LimitOptions } from "../queue.ts";

export function addQueueingCommands(program: Command): void {
  const queue = program
    .command("queue")
    .helpCommand(false)
    .description("the lines that work waits in: list, pause, resume, limit");

  queue
    .command("list")
    .description("all queues: what waits, what is at work, which limits they have")
    .addHelpText("after", examples("queue list"))
    .action(action(async (options: GlobalOptions) => (await import("../queue.ts")).listQueues(options)));

  for (const [name, description, work] of [
    ["pause", "hand out nothing more; what is at work goes on", "pauseQueue"],
    ["resume", "hand out work again", "resumeQueue"],
  ] as const)
    queue
      .command(name)
      .description(description)
      .argument("<queue>", "its name")
      .addHelpText("after", examples(`queue ${name} mail`))
      .action(
        action(async (given: string, options: GlobalOptions) => (await import("../queue.ts"))[work](given, options)),
      );

  queue
    .command("limit")
    .description("other limits, at once and for all workers, until code that declares new ones is deployed")
    .argument("<queue>", "its name")
    .option("--concurrency <count>", "at work at once", positiveNumber)
    .option("--rate <count/time>", "handed out in a time, such as 100/1m")
    .option("--key-concurrency <count>", "the same for each key", positiveNumber)
    .option("--key-rate <count/time>", "the same for each key")
    .option("--none", "no limits at all")
    .addHelpText("after", examples("queue limit mail --concurrency 4 --rate 100/1m", "queue limit mail --none"))
    .action(
      action(async (given: string, options: LimitOptions) => (await import("../queue.ts")).limitQueue(given, options)),
    );
}
