// Mirrors: the commands pull and import, which put runs of other stores into the home folder.

import type { Command } from "commander";
import { action, collect, examples, helpNotes, positiveNumber } from "../command.ts";
import type { ImportOptions } from "../import.ts";
import type { PullOptions } from "../pull.ts";

const NOTES = `
Every command that reads takes a run of a mirror as <mirror>/<id>, such as prod/order-7.
A mirror remembers the URL of its store without the password; set REPRISE_STORE_<NAME> to the whole URL.`;

export function addMirrorCommands(program: Command): void {
  program.commandsGroup("Mirrors:");

  program
    .command("pull")
    .description("Copy runs of another store or site into a mirror, to read and replay them here")
    .argument(
      "<source>",
      "store URL, or the name of a mirror whose store is known; of another site, the name of the peer or the URL of a carrier",
    )
    .argument("[runs...]", "ids of runs (default: the newest ones; of a site, only its log and what it publishes)")
    .option("--last <count>", "without ids: how many runs, newest first (default: 200)", positiveNumber)
    .option("--definition <name>", "without ids: only runs of this definition")
    .option("--family", "copy the children of the runs, too, and their children")
    .option("--as <name>", "name of the mirror (default: the name of the database or peer)")
    .option("--moved", "the store of the mirror is at another address now, or this is its replica")
    .option("--out <folder>", "write a bundle per run into this folder, signed by you, and no mirror")
    .addHelpText(
      "after",
      examples(
        "pull postgres://shop@db.example.com/shop order-7 --as prod",
        "pull prod order-8 --family",
        "pull prod --last 50 --definition order",
        "pull prod --last 20 --out test/runs",
        "pull hub order-7",
        "pull s3://history/shop order-7",
      ),
    )
    .addHelpText("after", helpNotes(NOTES))
    .action(
      action(async (source: string, runs: readonly string[], options: PullOptions) =>
        (await import("../pull.ts")).pull(source, runs, options),
      ),
    );

  program
    .command("import")
    .description("Put the runs of bundles into a mirror, to read and replay them here")
    .argument("<file...>", "bundles with payloads; - is standard input")
    .option("--as <name>", "name of the mirror (default: the name of the signer)")
    .option("--key <vkey>", "also accept signatures of this key", collect)
    .option("--identity <file>", "age identity for an encrypted bundle")
    .addHelpText("after", examples("import order-7.jsonl", "import order-7.jsonl --as prod"))
    .action(
      action(async (files: readonly string[], options: ImportOptions) =>
        (await import("../import.ts")).importBundles(files, options),
      ),
    );
}
