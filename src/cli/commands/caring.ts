// doctor, migrate, prune, backup, restore, rekey: looking after the store.

import type { Command } from "commander";
import type { MigrateOptions, PruneCommandOptions } from "../care.ts";
import { action, examples } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { RestoreCommandOptions } from "../restore.ts";

interface DoctorOptions extends GlobalOptions {
  readonly storeCases?: boolean | string;
}

export function addCaringCommands(program: Command): void {
  program.commandsGroup("Look after the store:");

  program
    .command("doctor")
    .description("what the store is, and whether everything in it is as it must be")
    .option(
      "--store-cases [text]",
      "try the promises of a store, all or those that say so, on this server or disk, in a place made for it",
    )
    .addHelpText("after", examples("doctor", "doctor --store sqlite:shop.db --json", "doctor --store-cases"))
    .action(
      action(async (options: DoctorOptions) => {
        if (options.storeCases !== undefined)
          return (await import("../store-cases.ts")).doctorStoreCases(options, options.storeCases);
        return (await import("../doctor.ts")).doctor(options);
      }),
    );

  program
    .command("migrate")
    .description(
      "bring the store to the schema of this version; of a file a copy is made first, of a server take a dump before",
    )
    .option("--backup <file>", "of a file: where the copy goes (default: beside it)")
    .option("--no-backup", "of a file: make no copy")
    .option("--dry-run", "only say what would be done")
    .addHelpText("after", examples("migrate --dry-run", "migrate --backup before.db"))
    .action(action(async (options: MigrateOptions) => (await import("../care.ts")).migrate(options)));

  program
    .command("prune")
    .description("remove runs that ended long ago, with their journals")
    .requiredOption("--older-than <age>", 'such as "30d" or "12 hours"')
    .option("--dry-run", "only count them")
    .option("--yes", "do not ask")
    .addHelpText("after", examples("prune --older-than 30d --dry-run", "prune --older-than 30d --yes"))
    .action(action(async (options: PruneCommandOptions) => (await import("../care.ts")).prune(options)));

  program
    .command("backup")
    .description("a consistent copy of the store, while work goes on")
    .argument("<file>", "where to; must not exist")
    .addHelpText("after", examples("backup shop-monday.db"))
    .action(action(async (file: string, options: GlobalOptions) => (await import("../care.ts")).backup(file, options)));

  program
    .command("restore")
    .description("put a backup in the place of the store's file, while no worker runs")
    .argument("<backup-file>", "made with `reprise backup`; checked first, and never changed")
    .option("--dry-run", "check the backup and that the file is not in use, and change nothing")
    .option("--no-keep", "remove the file that was there (default: it is kept beside, as <file>.before-restore-<time>)")
    .option("--yes", "do not ask")
    .addHelpText(
      "after",
      examples("restore shop-monday.db --dry-run", "restore shop-monday.db --store sqlite:shop.db --yes"),
    )
    .action(
      action(async (file: string, options: RestoreCommandOptions) =>
        (await import("../restore.ts")).restore(file, options),
      ),
    );

  program
    .command("rekey")
    .description("write every payload anew with today's key, while work goes on; needs --codec")
    .addHelpText("after", examples("rekey --codec codec.ts"))
    .action(action(async (options: GlobalOptions) => (await import("../care.ts")).rekey(options)));
}
