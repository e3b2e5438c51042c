// reprise migrate: moves live runs to another version of their definition, which a file exports.

import { RepriseError } from "../base/index.ts";
import { isTask } from "../kernel/index.ts";
import { versionOf } from "../process/index.ts";
import { applyControl, LIVE, type ControlOptions } from "./control.ts";
import { loadDefinitions } from "./load-definitions.ts";

export interface MigrateRunsOptions extends ControlOptions {
  readonly to?: number;
  readonly code?: string;
  readonly backup?: string | boolean;
}

/** Whether the command is about runs. Otherwise it is about the schema of the store. */
export function selectsRuns(ids: readonly string[], options: MigrateRunsOptions): boolean {
  const { to, code, definition, status, tag, all } = options;
  return ids.length > 0 || [to, code, definition, status, tag, all].some((option) => option !== undefined);
}

/** Each replays a whole journal in memory. */
const BATCH_SIZE = 8;

export async function migrateRuns(ids: readonly string[], options: MigrateRunsOptions): Promise<number> {
  const { to: version, code } = options;
  if (version === undefined || code === undefined)
    throw new RepriseError(
      "USAGE",
      "migrate: to continue runs with another version, pass --to <version> and --code <file>.",
    );
  if (typeof options.backup === "string")
    throw new RepriseError("USAGE", "migrate: --backup copies the file before its schema is upgraded. Remove it.");
  const definitions = await loadDefinitions(code);
  const names = definitions.flatMap((one) => (!isTask(one) && versionOf(one) === version ? [one.name] : []));
  if (names.length === 0)
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `${code} exports no workflow, graph or flow of version ${version}. Set \`version: ${version}\` in the options of the definition.`,
    );
  return applyControl(
    {
      verb: "migrate",
      past: "migrated",
      statuses: LIVE,
      definitions,
      batchSize: BATCH_SIZE,
      apply: (run) => run.migrate({ version }),
      check: (run) => run.migrate({ version, dryRun: true }),
      isDone: (record) => {
        if (record.version === version) return `it already has version ${version}`;
        if (names.includes(record.definition)) return undefined;
        return `${code} exports no version ${version} of ${record.definition}`;
      },
    },
    ids,
    options,
  );
}
