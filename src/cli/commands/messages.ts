// Messages: the commands signal, promises, resolve, reject, query, update and stream.

import type { Command } from "commander";
import { action, examples, SHOW_SECRETS, wholeNumber } from "../command.ts";
import type { PromisesOptions } from "../promises.ts";
import type { QueryOptions, SettleOptions, SignalOptions, StreamOptions, UpdateOptions } from "../messages.ts";

const FILE = ["--file <file>", "module with the run's workflow; validates the name and the value"] as const;
const BEFORE_START = [
  "--before-start <workflow>",
  "deliver the message when a run with this id starts; needs --file",
] as const;
const INPUT_FILE = ["--input-file <file>", "read the value from a file; - reads standard input"] as const;

const KEY = ["--key <key>", "key of the promise, if it has one"] as const;
const BY = ["--by <who>", "who decided; recorded in the journal"] as const;
const REASON = ["--reason <text>", "why; recorded in the journal"] as const;

export function addMessageCommands(program: Command): void {
  program.commandsGroup("Messages:");

  program
    .command("signal")
    .description("Send a signal to a run; the run receives signals in order")
    .argument("<id>", "run id")
    .argument("<signal>", "signal name")
    .argument("[value]", "value as JSON")
    .option(...INPUT_FILE)
    .option(...FILE)
    .option("--dedup-id <id>", "ignore this signal if one with the same id was sent before")
    .option(...BEFORE_START)
    .addHelpText(
      "after",
      examples('signal cart-7 add \'{"sku":"a","qty":2}\'', "signal cart-7 checkout --file cart.ts"),
    )
    .action(
      action(async (id: string, name: string, value: string | undefined, options: SignalOptions) =>
        (await import("../messages.ts")).signal(id, name, value, options),
      ),
    );

  program
    .command("promises")
    .description("List the promises that runs wait for, with the commands that resolve them")
    .option("--name <name>", "only promises with this name")
    .option("--definition <name>", "only promises of runs of this definition")
    .option("--limit <count>", "maximum number of promises", wholeNumber, 50)
    .option("--show-secrets", SHOW_SECRETS)
    .addHelpText("after", examples("promises", "promises --name approve --json"))
    .action(action(async (options: PromisesOptions) => (await import("../promises.ts")).promises(options)));

  program
    .command("resolve")
    .description("Resolve a promise that a run waits for")
    .argument("<id>", "run id")
    .argument("<promise>", "promise name")
    .argument("[value]", "value as JSON")
    .option(...KEY)
    .option(...BY)
    .option(...REASON)
    .option(...INPUT_FILE)
    .option(...FILE)
    .option(...BEFORE_START)
    .addHelpText(
      "after",
      examples(
        "resolve order-7 approval '{\"ok\":true}'",
        "resolve order-7 approval '{\"ok\":true}' --key ann --by Ann",
      ),
    )
    .action(
      action(async (id: string, name: string, value: string | undefined, options: SettleOptions) =>
        (await import("../messages.ts")).resolve(id, name, value, options),
      ),
    );

  program
    .command("reject")
    .description("Reject a promise that a run waits for")
    .argument("<id>", "run id")
    .argument("<promise>", "promise name")
    .argument("<message>", "error message")
    .option(...KEY)
    .option(...BY)
    .option(...REASON)
    .option(...FILE)
    .option(...BEFORE_START)
    .addHelpText("after", examples('reject order-7 approval "out of stock"'))
    .action(
      action(async (id: string, name: string, message: string, options: SettleOptions) =>
        (await import("../messages.ts")).reject(id, name, message, options),
      ),
    );

  program
    .command("query")
    .description("Query the code of a run, live or ended; writes nothing")
    .argument("<id>", "run id")
    .argument("<query>", "query name")
    .argument("[args]", "arguments as JSON")
    .requiredOption("--file <file>", "module with the run's workflow")
    .option(...INPUT_FILE)
    .addHelpText("after", examples("query cart-7 total --file cart.ts"))
    .action(
      action(async (id: string, name: string, args: string | undefined, options: QueryOptions) =>
        (await import("../messages.ts")).query(id, name, args, options),
      ),
    );

  program
    .command("update")
    .description("Send an update to a run and print its answer")
    .argument("<id>", "run id")
    .argument("<update>", "update name")
    .argument("[args]", "arguments as JSON")
    .option(...INPUT_FILE)
    .option(...FILE)
    .option("--dedup-id <id>", "handle updates with the same id once; each gets the same answer")
    .option("--timeout <duration>", "stop waiting after this long (default: never)")
    .addHelpText("after", examples('update cart-7 setQuantity \'{"sku":"a","qty":3}\' --timeout 10s'))
    .action(
      action(async (id: string, name: string, args: string | undefined, options: UpdateOptions) =>
        (await import("../messages.ts")).update(id, name, args, options),
      ),
    );

  program
    .command("stream")
    .description("Follow a stream of a run until the run ends")
    .argument("<id>", "run id")
    .argument("<stream>", "stream name")
    .option("--after <offset>", "only chunks after this offset", wholeNumber, 0)
    .option(...FILE)
    .addHelpText("after", examples("stream chat-7 tokens", "stream chat-7 tokens --after 120 --json"))
    .action(
      action(async (id: string, name: string, options: StreamOptions) =>
        (await import("../messages.ts")).stream(id, name, options),
      ),
    );
}
