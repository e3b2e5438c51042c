// schedule list, show, create, pause, resume, trigger, backfill, remove.

import { Option, type Command } from "commander";
import { action, examples } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { BackfillOptions, CreateOptions } from "../schedule.ts";

export function addSchedulingCommands(program: Command): void {
  program.commandsGroup("Plan:");
  const schedule = program
    .command("schedule")
    .helpCommand(false)
    .description("what starts runs by itself: list, show, create, pause, …");

  schedule
    .command("list")
    .description("all schedules, by name")
    .addHelpText("after", examples("schedule list"))
    .action(action(async (options: GlobalOptions) => (await import("../schedule.ts")).listSchedules(options)));

  named(schedule, "show", "one schedule, and its last runs", "showSchedule");

  schedule
    .command("create")
    .description("make a schedule, or bring the one of this name up to date")
    .argument("<name>", "the new schedule's name")
    .argument("<file>", "a module that exports the workflow")
    .argument("<workflow>", "the workflow's name")
    .argument("[input]", "its input, as JSON")
    .option("--cron <pattern>", 'five fields, six with seconds, or "@daily"')
    .option("--every <duration>", "an interval instead")
    .option("--time-zone <zone>", "of the pattern (default: UTC)")
    .addOption(
      new Option("--overlap <what>", "when the run before has not ended (default: skip)").choices([
        "skip",
        "queue",
        "cancel",
        "allow",
      ]),
    )
    .addOption(
      new Option("--catch-up <what>", "of the times that were missed (default: last)").choices(["none", "last", "all"]),
    )
    .option("--jitter <duration>", "start each run up to this much later")
    .option("--input-file <file>", "read the input from a file, or - for standard input")
    .addHelpText(
      "after",
      examples(
        'schedule create morning report.ts report \'"ann"\' --cron "0 9 * * MON-FRI" --time-zone Europe/Berlin',
        "schedule create sync shop.ts sync --every 10m --overlap queue",
      ),
    )
    .action(
      action(async (name: string, file: string, workflow: string, input: string | undefined, options: CreateOptions) =>
        (await import("../schedule.ts")).createSchedule(name, file, workflow, input, options),
      ),
    );

  named(schedule, "pause", "fire nothing more; runs that were started go on", "pauseSchedule");
  named(schedule, "resume", "go on with the next planned time", "resumeSchedule");
  named(schedule, "trigger", "start one run now, beside the planned ones", "triggerSchedule");

  schedule
    .command("backfill")
    .description("start every planned time of a stretch that has no run yet")
    .argument("<schedule>", "its name")
    .requiredOption("--from <time>", "2026-11-16, or with a time and zone 2026-11-16T09:00Z")
    .requiredOption("--to <time>", "up to, not including")
    .addHelpText("after", examples("schedule backfill morning --from 2026-11-09 --to 2026-11-14"))
    .action(
      action(async (name: string, options: BackfillOptions) =>
        (await import("../schedule.ts")).backfillSchedule(name, options),
      ),
    );

  named(schedule, "remove", "forget it; its runs stay", "removeSchedule").option("--yes", "do not ask");
}

function named(
  schedule: Command,
  name: string,
  description: string,
  work: "showSchedule" | "pauseSchedule" | "resumeSchedule" | "triggerSchedule" | "removeSchedule",
): Command {
  return schedule
    .command(name)
    .description(description)
    .argument("<schedule>", "its name")
    .addHelpText("after", examples(`schedule ${name} morning`))
    .action(
      action(async (given: string, options: GlobalOptions) => (await import("../schedule.ts"))[work](given, options)),
    );
}
