// Schedules: the commands schedule list, show, create, pause, resume, trigger, backfill and remove.

import { Option, type Command } from "commander";
import { action, examples } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { BackfillOptions, CreateOptions } from "../schedule.ts";

export function addScheduleCommands(program: Command): void {
  program.commandsGroup("Schedules and queues:");
  const schedule = program
    .command("schedule")
    .helpCommand(false)
    .description("Manage schedules (list, show, create, pause, …)");

  schedule
    .command("list")
    .description("List schedules by name")
    .addHelpText("after", examples("schedule list"))
    .action(action(async (options: GlobalOptions) => (await import("../schedule.ts")).listSchedules(options)));

  addNamed(schedule, "show", "Show one schedule and its latest runs", "showSchedule");

  schedule
    .command("create")
    .description("Create a schedule, or update the schedule with this name")
    .argument("<name>", "schedule name")
    .argument("<file>", "module that exports the workflow")
    .argument("<workflow>", "name of the workflow, graph or flow to start")
    .argument("[input]", "input as JSON")
    .option("--cron <pattern>", 'cron pattern: five fields, six with seconds, or "@daily"')
    .option("--every <duration>", "fixed interval, instead of --cron")
    .option("--time-zone <zone>", "time zone of the cron pattern (default: UTC)")
    .addOption(
      new Option("--overlap <policy>", "what to do while the previous run is still open (default: skip)").choices([
        "skip",
        "queue",
        "cancel",
        "allow",
      ]),
    )
    .addOption(
      new Option("--catch-up <policy>", "which missed times to start (default: last)").choices(["none", "last", "all"]),
    )
    .option("--jitter <duration>", "delay each run by a random time up to this")
    .option("--input-file <file>", "read the input from a file; - reads standard input")
    .addHelpText(
      "after",
      examples(
        'schedule create daily report.ts report --cron "0 9 * * MON-FRI"',
        "schedule create sync shop.ts sync --every 10m --overlap queue",
      ),
    )
    .action(
      action(async (name: string, file: string, workflow: string, input: string | undefined, options: CreateOptions) =>
        (await import("../schedule.ts")).createSchedule(name, file, workflow, input, options),
      ),
    );

  addNamed(schedule, "pause", "Pause a schedule; runs it has started continue", "pauseSchedule");
  addNamed(schedule, "resume", "Resume a schedule at its next planned time", "resumeSchedule");
  addNamed(schedule, "trigger", "Start one run now, in addition to the planned ones", "triggerSchedule");

  schedule
    .command("backfill")
    .description("Start a run for every planned time in a period that has none")
    .argument("<schedule>", "schedule name")
    .requiredOption("--from <time>", "start of the period, such as 2026-11-16 or 2026-11-16T09:00Z")
    .requiredOption("--to <time>", "end of the period, exclusive")
    .addHelpText("after", examples("schedule backfill morning --from 2026-11-09 --to 2026-11-14"))
    .action(
      action(async (name: string, options: BackfillOptions) =>
        (await import("../schedule.ts")).backfillSchedule(name, options),
      ),
    );

  addNamed(schedule, "remove", "Remove a schedule; its runs stay", "removeSchedule").option(
    "--yes",
    "skip the confirmation",
  );
}

function addNamed(
  schedule: Command,
  name: string,
  description: string,
  work: "showSchedule" | "pauseSchedule" | "resumeSchedule" | "triggerSchedule" | "removeSchedule",
): Command {
  return schedule
    .command(name)
    .description(description)
    .argument("<schedule>", "schedule name")
    .addHelpText("after", examples(`schedule ${name} morning`))
    .action(
      action(async (given: string, options: GlobalOptions) => (await import("../schedule.ts"))[work](given, options)),
    );
}
