// Tokens: the commands token create, list and revoke.

import type { Command } from "commander";
import { action, examples, helpNotes } from "../command.ts";
import type { TokenCreateOptions, TokenFileOptions } from "../token.ts";

const FILE = "file of the tokens (default: tokens.json in the home folder)";

export function addTokenCommands(program: Command): void {
  const token = program
    .command("token")
    .helpCommand(false)
    .description("Create, list or revoke tokens of the HTTP API")
    .addHelpText("after", examples("token create ci --role operator", "token list", "token revoke ci"));

  token
    .command("create")
    .description("Create a token and print it, once")
    .argument("<name>", "who uses it; stands in logs and with answers")
    .requiredOption("--role <role>", "viewer, reader, approver, operator or admin")
    .option("--definitions <names>", "only runs of these definitions, separated by commas", names)
    .option("--tags <tags>", "only runs with one of these tags, separated by commas", names)
    .option("--queues <names>", "only these queues, separated by commas", names)
    .option("--expires <time>", 'until it expires: "90 days" (default: never)')
    .option("--file <file>", FILE)
    .addHelpText(
      "after",
      examples(
        "token create ci --role operator --definitions refund,order",
        'token create ann --role approver --expires "90 days"',
      ),
    )
    .addHelpText("after", helpNotes("\nThe file keeps a hash; the token itself is not kept and cannot be shown again."))
    .action(
      action(async (name: string, options: TokenCreateOptions) =>
        (await import("../token.ts")).createToken(name, options),
      ),
    );

  token
    .command("list")
    .description("List the tokens with their roles, scopes and expiries")
    .option("--file <file>", FILE)
    .addHelpText("after", examples("token list", "token list --json"))
    .action(action(async (options: TokenFileOptions) => (await import("../token.ts")).listTokens(options)));

  token
    .command("revoke")
    .description("Revoke a token; running servers refuse it from the next request on")
    .argument("<name>", "name of the token")
    .option("--file <file>", FILE)
    .addHelpText("after", examples("token revoke ci"))
    .action(
      action(async (name: string, options: TokenFileOptions) =>
        (await import("../token.ts")).revokeToken(name, options),
      ),
    );
}

function names(text: string): readonly string[] {
  return text.split(",").map((name) => name.trim());
}
