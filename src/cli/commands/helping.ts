// completion, explain: help beyond --help.

import { Argument, type Command } from "commander";
import { action, examples } from "../command.ts";
import { COMPLETION_SCRIPTS, SHELLS, type Shell } from "../completion-scripts.ts";
import type { GlobalOptions } from "../global-options.ts";

export function addHelpingCommands(program: Command): void {
  program.commandsGroup("Help:");

  program
    .command("explain")
    .description("what an error code means and what to do; without a code, all of them")
    .argument("[code]", "such as STORE_BUSY")
    .addHelpText("after", examples("explain START_CONFLICT", "explain"))
    .action(
      action(async (code: string | undefined, options: GlobalOptions) =>
        (await import("../explain.ts")).explain(code, options),
      ),
    );

  program
    .command("completion")
    .description("a script that teaches your shell the commands, and the ids of your runs")
    .addArgument(new Argument("<shell>", "which shell").choices(SHELLS))
    .addHelpText(
      "after",
      `${examples("completion bash", "completion fish")}\n\nbash: source <(reprise completion bash), best in ~/.bashrc; zsh likewise.\nfish: reprise completion fish > ~/.config/fish/completions/reprise.fish`,
    )
    .action(
      action((shell: Shell, options: GlobalOptions) => {
        const script = COMPLETION_SCRIPTS[shell];
        process.stdout.write(options.json ? `${JSON.stringify({ shell, script })}\n` : script);
        return Promise.resolve(0);
      }),
    );

  program
    .command("complete", { hidden: true })
    .argument("[words...]")
    .action(action(async (words: readonly string[]) => (await import("../complete.ts")).complete(words)));
}
