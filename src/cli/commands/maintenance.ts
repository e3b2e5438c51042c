// Maintenance: the commands doctor, migrate, prune, backup, restore, rekey and views.

import type { Command } from "commander";
import { action, examples, helpNotes, positiveNumber } from "../command.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { MigrateRunsOptions } from "../migrate-runs.ts";
import { selecting } from "./control.ts";
import type { MigrateOptions, PruneCommandOptions } from "../maintenance.ts";
import type { RestoreCommandOptions } from "../restore.ts";

interface DoctorOptions extends GlobalOptions {
  readonly storeCases?: boolean | string;
}

export function addMaintenanceCommands(program: Command): void {
  program.commandsGroup("Maintenance:");

  program
    .command("doctor")
    .description("Check the store's integrity and report stuck work")
    .option(
      "--store-cases [text]",
      "run the store conformance tests (all, or those whose name contains TEXT) against this database",
    )
    .addHelpText("after", examples("doctor", "doctor --store sqlite:shop.db --json", "doctor --store-cases"))
    .action(
      action(async (options: DoctorOptions) => {
        if (options.storeCases !== undefined)
          return (await import("../store-cases.ts")).doctorStoreCases(options, options.storeCases);
        return (await import("../doctor.ts")).doctor(options);
      }),
    );

  selecting(program.command("migrate"))
    .description(
      "Upgrade the store to this version's schema, or continue runs with another version of their definition",
    )
    .option("--backup <file>", "SQLite: where to copy the file first (default: beside it)")
    .option("--no-backup", "SQLite: make no copy")
    .option("--to <version>", "version that the selected runs continue with", positiveNumber)
    .option("--code <file>", "module that exports that version")
    .option("--dry-run", "report what would change and change nothing")
    .addHelpText(
      "after",
      examples(
        "migrate --dry-run",
        "migrate --backup before.db",
        "migrate order-7 --to 2 --code order.ts",
        "migrate --definition order --to 2 --code order.ts --dry-run",
      ),
    )
    .addHelpText("after", helpNotes("\nA database server is not copied: dump it with its own tools first."))
    .action(
      action(async (ids: readonly string[], options: MigrateOptions & MigrateRunsOptions) => {
        const { migrateRuns, selectsRuns } = await import("../migrate-runs.ts");
        if (selectsRuns(ids, options)) return migrateRuns(ids, options);
        return (await import("../maintenance.ts")).migrate(options);
      }),
    );

  program
    .command("prune")
    .description("Delete runs that ended long ago, and their journals")
    .requiredOption("--older-than <age>", 'minimum age since the end, such as "30d" or "12 hours"')
    .option("--archived", "delete only runs that `reprise archive` has put on a carrier")
    .option("--threads", "delete LangGraph threads without a checkpoint for that long, instead of runs")
    .option("--dry-run", "count and delete nothing")
    .option("--yes", "skip the confirmation")
    .addHelpText(
      "after",
      examples(
        "prune --older-than 30d --dry-run",
        "prune --older-than 30d --yes",
        "prune --archived --older-than 30d --yes",
        "prune --threads --older-than 90d --yes",
      ),
    )
    .action(action(async (options: PruneCommandOptions) => (await import("../maintenance.ts")).prune(options)));

  program
    .command("backup")
    .description("Write a consistent copy of the store while workers run")
    .argument("<file>", "new file to write to")
    .addHelpText("after", examples("backup shop-monday.db"))
    .action(
      action(async (file: string, options: GlobalOptions) => (await import("../maintenance.ts")).backup(file, options)),
    );

  program
    .command("restore")
    .description("Replace the store's file with a backup; stop all workers first")
    .argument("<backup-file>", "backup made with `reprise backup`; it is checked and not changed")
    .option("--dry-run", "check the backup and that the store is not in use; change nothing")
    .option("--no-keep", "delete the replaced file (default: keep it as <file>.before-restore-<time>)")
    .option("--yes", "skip the confirmation")
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
    .description("Re-encrypt every payload with the current key of --codec")
    .addHelpText("after", examples("rekey --codec codec.ts"))
    .action(action(async (options: GlobalOptions) => (await import("../maintenance.ts")).rekey(options)));

  program
    .command("views")
    .description("Print the SQL that creates the views for reports; a migration runs it where it may")
    .addHelpText("after", examples("views --store postgres://localhost/shop", "views | mysql shop"))
    .action(action(async (options: GlobalOptions) => (await import("../views.ts")).views(options)));
}
