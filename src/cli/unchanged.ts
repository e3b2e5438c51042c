// Unchanged: what a command reports about an object that it names and did not change (docs/decisions/0090).

import { EXIT } from "./exit-codes.ts";
import { paintError, remark } from "./output.ts";
import { plain } from "./text.ts";

/** The exit code of a command on named objects: 0 only if it changed every one of them. */
export function exitCodeOf(skippedCount: number): number {
  return skippedCount === 0 ? EXIT.ok : EXIT.problem;
}

/** `skipped mail: already paused` */
export function remarkSkipped(name: string, reason: string): void {
  remark(`${paintError("yellow", "skipped")} ${plain(name)}: ${plain(reason)}`);
}
