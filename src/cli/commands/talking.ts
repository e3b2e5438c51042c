// signal, resolve, reject, query, update, stream: messages into a run and out of it, with or without its code.

import type { Command } from "commander";
import { action, examples, wholeNumber } from "../command.ts";
import type { QueryOptions, SignalOptions, StreamOptions, TalkOptions, UpdateOptions } from "../talk.ts";

const FILE = ["--file <file>", "the module with the run's workflow: name and value are checked against it"] as const;

const BEFORE_START = [
  "--before-start <workflow>",
  "the run may not be there yet: it gets the message when it is started; needs --file",
] as const;
const INPUT_FILE = ["--input-file <file>", "read the value from a file, or - for standard input"] as const;

export function addTalkingCommands(program: Command): void {
  program.commandsGroup("Talk to runs:");

  program
    .command("signal")
    .description("send a signal to a run; it takes signals in the order they come")
    .argument("<id>", "the run's id")
    .argument("<signal>", "the name of the signal")
    .argument("[value]", "its value, as JSON")
    .option(...INPUT_FILE)
    .option(...FILE)
    .option("--dedup-id <id>", "a second signal with the same id is dropped")
    .option(...BEFORE_START)
    .addHelpText(
      "after",
      examples('signal cart-7 add \'{"sku":"a","qty":2}\'', "signal cart-7 checkout --file cart.ts"),
    )
    .action(
      action(async (id: string, name: string, value: string | undefined, options: SignalOptions) =>
        (await import("../talk.ts")).signal(id, name, value, options),
      ),
    );

  program
    .command("resolve")
    .description("give a promise of a run its value")
    .argument("<id>", "the run's id")
    .argument("<promise>", "the name of the promise")
    .argument("[value]", "its value, as JSON")
    .option(...INPUT_FILE)
    .option(...FILE)
    .option(...BEFORE_START)
    .addHelpText(
      "after",
      examples("resolve order-7 approval '{\"ok\":true}'", "resolve order-7 approval '{\"ok\":true}' --file order.ts"),
    )
    .action(
      action(async (id: string, name: string, value: string | undefined, options: TalkOptions) =>
        (await import("../talk.ts")).resolve(id, name, value, options),
      ),
    );

  program
    .command("reject")
    .description("give a promise of a run an error instead of a value")
    .argument("<id>", "the run's id")
    .argument("<promise>", "the name of the promise")
    .argument("<message>", "what the error says")
    .option(...FILE)
    .option(...BEFORE_START)
    .addHelpText("after", examples('reject order-7 approval "out of stock"'))
    .action(
      action(async (id: string, name: string, message: string, options: TalkOptions) =>
        (await import("../talk.ts")).reject(id, name, message, options),
      ),
    );

  program
    .command("query")
    .description("ask the code of a run, live or ended; nothing is written")
    .argument("<id>", "the run's id")
    .argument("<query>", "the name of the query")
    .argument("[args]", "what it is asked with, as JSON")
    .requiredOption("--file <file>", "the module with the run's workflow")
    .option(...INPUT_FILE)
    .addHelpText("after", examples("query cart-7 total --file cart.ts"))
    .action(
      action(async (id: string, name: string, args: string | undefined, options: QueryOptions) =>
        (await import("../talk.ts")).query(id, name, args, options),
      ),
    );

  program
    .command("update")
    .description("send a message that the run's code answers, and print the answer")
    .argument("<id>", "the run's id")
    .argument("<update>", "the name of the update")
    .argument("[args]", "what it is sent with, as JSON")
    .option(...INPUT_FILE)
    .option(...FILE)
    .option("--dedup-id <id>", "the same update again is handled once, and gets the same answer")
    .option("--timeout <duration>", "give up waiting after this long (default: never)")
    .addHelpText("after", examples('update cart-7 setQuantity \'{"sku":"a","qty":3}\' --file cart.ts --timeout 10s'))
    .action(
      action(async (id: string, name: string, args: string | undefined, options: UpdateOptions) =>
        (await import("../talk.ts")).update(id, name, args, options),
      ),
    );

  program
    .command("stream")
    .description("what a run says on one of its streams, live, until it ends")
    .argument("<id>", "the run's id")
    .argument("<stream>", "the name of the stream")
    .option("--after <offset>", "only what comes after this one", wholeNumber, 0)
    .option(...FILE)
    .addHelpText("after", examples("stream chat-7 tokens", "stream chat-7 tokens --after 120 --json"))
    .action(
      action(async (id: string, name: string, options: StreamOptions) =>
        (await import("../talk.ts")).stream(id, name, options),
      ),
    );
}
