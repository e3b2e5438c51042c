// Verify: the commands replay and verify.

import { Option, type Command } from "commander";
import { action, collect, examples, GENERATION, helpNotes, positiveNumber, wholeNumber } from "../command.ts";
import type { DebugOptions } from "../debug.ts";
import type { EvalOptions } from "../eval.ts";
import type { ReplayCommandOptions } from "../replay.ts";
import type { VerifyOptions } from "../verify.ts";

const FILE = "module that exports the run's workflow, graph or flow, and its tasks";

const IDENTITY = "age identity that opens an encrypted bundle";

const VERIFY_EXITS = `
Exit codes; of many runs, the first in this order:
    5  damaged, or forked
    6  unsigned, or signed by a key that is not admitted
    4  the code differs
    9  a pure step differs
    7  incomplete, or erased
    8  inconclusive: a value differs, on a runtime that the run never had,
       or a pure step cannot be executed
    1  --all found no run`;

const EVAL_EXITS = `
Scores without an evaluation() in the file: output (the same output) and ended
(the same status). The score same is the share of forks without a difference.

Exit codes:
    1  a score is below --fail-under, a scorer failed, or no run matches`;

export function addVerifyCommands(program: Command): void {
  program.commandsGroup("Verify:");

  program
    .command("replay")
    .description("Check that the current code matches a run's journal; writes nothing")
    .argument("<id>", "run id")
    .argument("<file>", FILE)
    .option("--generation <number>", GENERATION, wholeNumber)
    .addOption(
      new Option(
        "--mode <mode>",
        "full: use recorded results only; resume: continue live from a checkpoint of a graph, on an in-memory copy",
      )
        .choices(["full", "resume"])
        .default("full"),
    )
    .option("--from <step>", "checkpoint to resume from (default: latest)", wholeNumber)
    .option("--label <name>", "checkpoint to resume from, by its label")
    .option("--lenient", "report every difference instead of stopping at the first one")
    .option("--live <node...>", "repeat the calls of these nodes and compare the results with the journal")
    .addHelpText(
      "after",
      examples(
        "replay order-7 order.ts",
        "replay ticket-1 agent.ts --lenient",
        "replay ticket-1 agent.ts --live think",
        "replay ticket-1 agent.ts --mode resume --from 3",
      ),
    )
    .action(
      action(async (id: string, file: string, options: ReplayCommandOptions) =>
        (await import("../replay.ts")).replay(id, file, options),
      ),
    );

  program
    .command("debug")
    .description("Replay a run under Node's inspector: attach Chrome, VS Code or a terminal")
    .argument("<target>", "run id, run of a mirror (prod/order-7), or bundle file")
    .argument("<file>", FILE)
    .option("--at <command>", "stop before this is delivered: Task(3), a flow's node, or the number of an entry")
    .option("--live", "then continue from there on a copy in memory, with real calls")
    .option("--port <number>", "port of the inspector (default: 9229, or a free one)", wholeNumber)
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--id <id>", "run of a bundle that has several")
    .option("--identity <file>", IDENTITY)
    .addHelpText(
      "after",
      examples(
        "debug order-7 order.ts",
        "debug order-7 order.ts --at 'Task(3)'",
        "debug prod/order-7 order.ts --at 'Task(3)' --live",
        "debug order-7.jsonl order.ts",
      ),
    )
    .action(
      action(async (target: string, file: string, options: DebugOptions) =>
        (await import("../debug.ts")).debug(target, file, options),
      ),
    );

  program
    .command("verify")
    .description("Check runs and bundles: journal, signature, completeness, code; writes nothing")
    .argument("[targets...]", "run ids and bundle files; `<run> <code file>` is short for --code")
    .option("--all", "every run of the store")
    .option("--last <count>", "with --all: only the newest runs", positiveNumber)
    .option("--definition <name>", "with --all: only runs of this definition")
    .option("--code <file>", `replay with this ${FILE}`)
    .option(
      "--level <number>",
      "0 integrity, 1 signature, 2 completeness, 3 replay, 4 execute pure steps again (default: 1 for a file, 0 for a store)",
      wholeNumber,
    )
    .option("--key <vkey>", "admit signatures of this key; can be repeated", collect)
    .option("--generation <number>", GENERATION, wholeNumber)
    .option("--junit <file>", "also write the verdicts as JUnit XML")
    .option("--identity <file>", IDENTITY)
    .addHelpText(
      "after",
      examples(
        "verify order-7 --code order.ts",
        "verify order-7.jsonl --key edge7/5647…",
        "verify --all --last 200 --code dist/flows.js --junit verify.xml",
      ),
    )
    .addHelpText("after", helpNotes(VERIFY_EXITS))
    .action(
      action(async (targets: readonly string[], options: VerifyOptions) =>
        (await import("../verify.ts")).verify(targets, options),
      ),
    );

  addEvalCommand(program);
}

function collectOne(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

function addEvalCommand(program: Command): void {
  program
    .command("eval")
    .description("Repeat recorded runs with changed code or other models, and score them; calls nothing else")
    .argument("<file>", "module that exports the workflow, graph or flow, its tasks, and evaluation(…)s")
    .argument("[targets...]", "bundle files, run ids, and mirrors such as prod/ (default: runs of the store)")
    .option("--only <name>", "comma-separated exports of the file to evaluate", collect)
    .option("--definition <name>", "evaluate only this definition")
    .option("--tag <tag>", "only runs of the store with all of these comma-separated tags", collect)
    .option("--status <status>", "only runs with these comma-separated statuses (default: completed,failed)", collect)
    .option("--created-after <time>", "only runs created at this time or later: a date (UTC) or an age such as 2h")
    .option("--limit <count>", "maximum number of runs (default: 100)", positiveNumber)
    .option("--at <place>", "where forks begin: node=think, call=think:2, step=3, label=asked, command=Task:3")
    .option("--model <name=model>", "another model for a name in the code; may be repeated", collect)
    .option("--answer <command=json>", "another answer for a command or a node; may be repeated", collectOne)
    .addOption(
      new Option("--effects <how>", "execute everything, or call only replaced models (default: recorded)").choices([
        "live",
        "recorded",
      ]),
    )
    .option("--budget <unit=amount>", "what all forks together may cost, such as usd=5", collect)
    .option("--fail-under <score=least>", "exit with 1 if the mean of this score is lower; may be repeated", collect)
    .option("--concurrency <count>", "how many forks run at once (default: 16)", positiveNumber)
    .option("--timeout <duration>", "how long a fork may take (default: 60s)")
    .option("--id <id>", "name the evaluation, so that the same command continues it after an interruption")
    .option("--save", "keep the report in the store, where the dashboard shows it")
    .option("--junit <file>", "also write the results as JUnit XML")
    .option("--key <vkey>", "admit signatures of this key; can be repeated", collect)
    .option("--identity <file>", IDENTITY)
    .addHelpText(
      "after",
      examples(
        "eval agent.ts evals/*.jsonl --fail-under output=1",
        "eval agent.ts --tag prod --model fast=strong --budget usd=5",
        "eval agent.ts prod/ --at node=think --fail-under tone=0.9",
      ),
    )
    .addHelpText("after", helpNotes(EVAL_EXITS))
    .action(
      action(async (file: string, targets: readonly string[], options: EvalOptions) =>
        (await import("../eval.ts")).evaluateRuns(file, targets, options),
      ),
    );
}
