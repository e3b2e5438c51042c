// Receipts: the commands bundle and key.

import type { Command } from "commander";
import type { BundleCommandOptions } from "../bundle.ts";
import { action, collect, examples, helpNotes, wholeNumber } from "../command.ts";
import type { KeyOptions } from "../key.ts";

export function addReceiptCommands(program: Command): void {
  program.commandsGroup("Receipts:");

  program
    .command("bundle")
    .description("Write runs to one file that proves what ran, and replays elsewhere")
    .argument("<id...>", "run ids; all generations of each run are included")
    .requiredOption("-o, --output <file>", "new file to write to, readable only by you; - is standard output")
    .option("--family", "also include children, parents and origins of forks")
    .option("--generation <number>", "only this generation of the run", wholeNumber)
    .option("--hash-only", "digests instead of payloads; those of short values can be guessed")
    .option("--blind", "blind digests instead of payloads: nothing can be guessed (default if the store has a codec)")
    .option("--full", "payloads in plain text, secrets included (default unless the store has a codec)")
    .option("--unsigned", "do not sign; `verify` accepts no unsigned bundle at level 1")
    .option("--html", "write a page that shows the runs and checks itself in a browser")
    .option("--to <recipient>", "encrypt for an age recipient (age1…); repeatable; needs `age-encryption`", collect)
    .addHelpText(
      "after",
      examples(
        "bundle order-7 -o order-7.jsonl",
        "bundle order-7 --family --blind -o audit.jsonl",
        "bundle order-7 --html -o order-7.html",
        "bundle order-7 --to age1… -o order-7.age",
      ),
    )
    .addHelpText(
      "after",
      helpNotes("\nA run bundled twice gives the same bytes, unless it moved meanwhile or --to encrypts it."),
    )
    .action(
      action(async (ids: readonly string[], options: BundleCommandOptions) =>
        (await import("../bundle.ts")).bundle(ids, options),
      ),
    );

  const key = program
    .command("key")
    .helpCommand(false)
    .description("Print the key that signs your bundles; creates it if there is none")
    .option("--name <name>", "name of a new key (default: the name of the folder)")
    .addHelpText("after", examples("key", "key --name billing", "key trust <vkey>", "key list"))
    .addHelpText(
      "after",
      helpNotes(
        "\nREPRISE_KEY (<name>:<32 bytes in base64>, the text of the key file) wins over the file in the folder.",
      ),
    )
    .action(action(async (options: KeyOptions) => (await import("../key.ts")).showKey(options)));

  key
    .command("trust")
    .description("Accept signatures of another signer")
    .argument("<vkey>", "what `reprise key` prints there")
    .addHelpText("after", examples("key trust edge7/56475aa75463474c+8b74b291+AQOhB7…"))
    .action(action(async (vkey: string, options: KeyOptions) => (await import("../key.ts")).trust(vkey, options)));

  key
    .command("rotate")
    .description("Replace the key of this site; its log names the new one, so peers follow")
    .addHelpText("after", examples("key rotate"))
    .addHelpText("after", helpNotes("\nThe old key vouches for the new one, and its signatures stay valid."))
    .action(action(async (options: KeyOptions) => (await import("../fed.ts")).rotateKey(options)));

  key
    .command("list")
    .description("List your key and those you trust")
    .addHelpText("after", examples("key list --json"))
    .action(action(async (options: KeyOptions) => (await import("../key.ts")).listKeys(options)));
}
