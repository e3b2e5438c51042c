// Control: the commands cancel, terminate, pause, resume, retry, delete, budget, raise and decline.

import type { Command } from "commander";
import type { AnswerOptions, RaiseOptions } from "../budget.ts";
import { action, collect, examples, wholeNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { CONTROL_ACTIONS, ControlOptions } from "../control.ts";
import type { DeleteOptions } from "../delete.ts";

export function addControlCommands(program: Command): void {
  program.commandsGroup("Control:");
  const reason = ["--reason <text>", "reason to record in the journal"] as const;
  add(
    program,
    "cancel",
    "Request cancellation; the code of a run can clean up first",
    "order-7",
    "--definition order --tag eu",
  ).option(...reason);
  add(program, "terminate", "End runs immediately, without running their code", "order-7", "--definition order").option(
    ...reason,
  );
  add(
    program,
    "pause",
    "Pause runs: no new steps start; steps already running may finish",
    "order-7",
    "--definition order",
  );
  add(
    program,
    "resume",
    "Resume paused or stopped runs (blocked, determinism_violation) with the current code",
    "order-7",
    "--status blocked",
  );
  add(program, "retry", "Retry failed runs from the failed step, with the current code", "order-7", "--tag eu");

  addBudgetCommands(program);

  program
    .command("delete")
    .description("Delete ended runs with their children and journals")
    .argument("<ids...>", "run ids")
    .option("--yes", "skip the confirmation")
    .addHelpText("after", examples("delete order-7", "delete order-7 order-8 --yes"))
    .action(
      action(async (ids: readonly string[], options: DeleteOptions) =>
        (await import("../delete.ts")).deleteRuns(ids, options),
      ),
    );
}

const BY = ["--by <who>", "who decided; recorded in the journal"] as const;
const WHY = ["--reason <text>", "why; recorded in the journal"] as const;

function addBudgetCommands(program: Command): void {
  program
    .command("budget")
    .description("Show what a run and its children have spent, reserved and lost, and what waits for the budget")
    .argument("<id>", "run id")
    .addHelpText("after", examples("budget agent-7", "budget agent-7 --json"))
    .action(
      action(async (id: string, options: GlobalOptions) => (await import("../budget.ts")).showBudget(id, options)),
    );
  program
    .command("raise")
    .description("Raise the budget of a run; calls that wait for it continue")
    .argument("<id>", "run id")
    .option("--usd <amount>", "US dollars to add", Number)
    .option("--tokens <count>", "tokens to add", wholeNumber)
    .option("--calls <count>", "calls to add", wholeNumber)
    .option(...BY)
    .option(...WHY)
    .addHelpText("after", examples("raise agent-7 --usd 2 --by ann --reason 'a large customer'"))
    .action(action(async (id: string, options: RaiseOptions) => (await import("../budget.ts")).raise(id, options)));
  program
    .command("decline")
    .description("Decline to raise the budget of a run; calls that wait for it fail with BUDGET_REACHED")
    .argument("<id>", "run id")
    .option(...BY)
    .option(...WHY)
    .addHelpText("after", examples("decline agent-7 --by ann --reason enough"))
    .action(action(async (id: string, options: AnswerOptions) => (await import("../budget.ts")).decline(id, options)));
}

function add(
  program: Command,
  name: keyof typeof CONTROL_ACTIONS,
  description: string,
  ...samples: readonly string[]
): Command {
  return selecting(program.command(name))
    .description(description)
    .option("--dry-run", "list the selected runs and change nothing")
    .addHelpText("after", examples(...samples.map((sample) => `${name} ${sample}`), `${name} --all --dry-run`))
    .action(
      action(async (ids: readonly string[], options: ControlOptions) =>
        (await import("../control.ts")).controlRuns(name, ids, options),
      ),
    );
}

/** The options that select runs. */
export function selecting(command: Command): Command {
  return command
    .argument("[ids...]", "run ids")
    .option("--definition <name>", "select the runs of this definition")
    .option("--status <status>", "select runs by comma-separated statuses", collect)
    .option("--tag <tag>", "select the runs with all of these comma-separated tags", collect)
    .option("--all", "select all runs")
    .option("--yes", "skip the confirmation");
}
