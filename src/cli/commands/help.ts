// Help: the commands explain, mcp and completion, and the hidden command complete that shells call.

import { Argument, type Command } from "commander";
import { action, collect, examples } from "../command.ts";
import { COMPLETION_SCRIPTS, SHELLS, type Shell } from "../completion-scripts.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { McpCommandOptions } from "../mcp.ts";

/** Without names the option is `true`. */
function allowed(text: string, earlier: readonly string[] | true = []): readonly string[] | true {
  return earlier === true ? true : collect(text, earlier);
}

export function addHelpCommands(program: Command): void {
  program.commandsGroup("Help:");

  program
    .command("explain")
    .description("Explain an error code; without a code, list all of them")
    .argument("[code]", "error code, such as STORE_BUSY")
    .addHelpText("after", examples("explain START_CONFLICT", "explain"))
    .action(
      action(async (code: string | undefined, options: GlobalOptions) =>
        (await import("../explain.ts")).explain(code, options),
      ),
    );

  program
    .command("mcp")
    .description("Serve runs and documents to agents (Model Context Protocol, over stdio); read-only by default")
    .option(
      "--allow [names]",
      "tools that change state, or definitions that may be started, comma-separated; without names, all",
      allowed,
    )
    .option("--code <file>", "module with the definitions that can be started")
    .option("--worker", "also execute runs of the code")
    .addHelpText(
      "after",
      examples(
        "mcp",
        "mcp --code order.ts --allow",
        "mcp --code order.ts --worker --allow order,run_cancel",
        "mcp --allow promise_resolve",
      ),
    )
    .action(action(async (options: McpCommandOptions) => (await import("../mcp.ts")).mcp(options)));

  program
    .command("completion")
    .description("Print a completion script for your shell")
    .addArgument(new Argument("<shell>", "shell name").choices(SHELLS))
    .addHelpText(
      "after",
      `${examples("completion bash", "completion fish")}

Install:
  bash, zsh  add to ~/.bashrc or ~/.zshrc:
             source <(reprise completion bash)
  fish       reprise completion fish > ~/.config/fish/completions/reprise.fish`,
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
