// Memo: the commands memo list and clear.

import type { Command } from "commander";
import { action, examples, positiveNumber } from "../command.ts";
import type { MemoClearOptions, MemoListOptions } from "../memo.ts";

export function addMemoCommands(program: Command): void {
  const memo = program
    .command("memo")
    .helpCommand(false)
    .description("Manage the remembered results of pure steps (list, clear)");

  memo
    .command("list")
    .description("List remembered results by key, with the runs that computed them")
    .option("--off", "only keys that are not reused: different or damaged results")
    .option("--limit <count>", "maximum number of keys", positiveNumber, 100)
    .option("--show-secrets", "print payloads without redaction")
    .addHelpText("after", examples("memo list", "memo list --off --json"))
    .action(action(async (options: MemoListOptions) => (await import("../memo.ts")).listMemo(options)));

  memo
    .command("clear")
    .description("Forget results, so that their steps are executed again")
    .argument("[keys...]", "keys as `reprise memo list` shows them")
    .option("--all", "forget all results")
    .option("--yes", "skip the confirmation")
    .addHelpText("after", examples("memo clear --all --yes"))
    .action(
      action(async (keys: readonly string[], options: MemoClearOptions) =>
        (await import("../memo.ts")).clearMemo(keys, options),
      ),
    );
}
