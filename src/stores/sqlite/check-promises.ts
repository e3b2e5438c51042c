// Check promises: every open promise of a live run is listed, and every listed promise is open (open-promise.P1).

import { hasEnded } from "../../kernel/index.ts";
import type { JournalCheck } from "./check-journal.ts";
import type { CheckedRun } from "./check-run.ts";
import type { CheckStatements } from "./check-store.ts";

export const CHECK_PROMISES_SQL = {
  promises: "select command, name, key from run_promises where run = ? and seq > 0 order by command",
} as const;

interface Listed {
  readonly command: string;
  readonly name: string;
  readonly key: string | null;
}

const LISTED = "I46 open promises listed";

export function checkPromises(
  sql: CheckStatements,
  run: CheckedRun,
  journal: JournalCheck,
): readonly (readonly [invariant: string, message: string])[] {
  const listed = sql.promises.all(run.run) as unknown as Listed[];
  if (hasEnded(run.status)) {
    if (listed.length === 0 || run.leftover === 1) return [];
    return [
      ["I17 no rows after the end", `The run has ended, but ${listed.length} of its promises are listed as open.`],
    ];
  }
  // The holder of the turn removes the promises of a stopped node when the node has ended.
  if (run.token !== null) return [];
  const open = journal.openPromises();
  const commands = new Set(listed.map(({ command }) => command));
  const stale = listed.filter(
    ({ command, name, key }) => open.get(command) !== (key === null ? name : `${name}[${key}]`),
  );
  const missing = run.hasUnlisted === 1 ? [] : [...open].filter(([command]) => !commands.has(command));
  return [
    ...stale.map(
      ({ command }) =>
        [
          LISTED,
          `${command} is listed as an open promise, but the run does not wait for it. \`reprise promises\` shows it until the run ends.`,
        ] as const,
    ),
    ...missing.map(
      ([command, id]) =>
        [
          LISTED,
          `The run waits for promise ${id} (${command}), which \`reprise promises\` does not show. \`reprise resolve\` still works.`,
        ] as const,
    ),
  ];
}
