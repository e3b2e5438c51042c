// Explanation: the lines that say why a run does not move, with the commands that help.

import type { WaitReason } from "../explain/index.ts";
import { withStoreOption } from "./next-command.ts";
import { lineWidth, paint, type Paint } from "./output.ts";
import { plain } from "./text.ts";

const MAX_REASONS = 12;

/** The section of `show`; empty: there is nothing to say. */
export function explanationLines(reasons: readonly WaitReason[]): readonly string[] {
  // The error of the run says why the engine stopped it.
  const shown = reasons.filter(({ reason }) => reason !== "stopped");
  if (shown.length === 0) return [];
  const more = shown.length - MAX_REASONS;
  return [
    paint("bold", "now"),
    ...shown.slice(0, MAX_REASONS).flatMap((reason) => reasonLines(reason, paint)),
    ...(more > 0 ? [`  … and ${more} more; print them with --json`] : []),
  ];
}

function reasonLines(reason: WaitReason, painted: Paint): readonly string[] {
  const lines = wrapWords(`${plain(reason.text)}${commandText(reason)}`, lineWidth() - 4);
  return [
    ...lines.map((line, index) => `${index === 0 ? "  " : "    "}${line}`),
    // Not wrapped: people paste it.
    ...reason.next.map((command) => `    ${painted("dim", "next:")} ${withStoreOption(plain(command))}`),
  ];
}

/** The command of the code that waits, as the timeline shows it. */
function commandText(reason: WaitReason): string {
  if ("command" in reason && reason.command !== undefined) return `  ${plain(reason.command)}`;
  const commands = "work" in reason ? reason.work.commands : [];
  return commands.length === 1 && "work" in reason && reason.work.kind === "task" ? `  ${plain(commands[0]!)}` : "";
}

/** One line per reason, for output that is redrawn. */
export function explanationTexts(reasons: readonly WaitReason[]): readonly string[] {
  return reasons.filter(({ reason }) => reason !== "stopped").map(({ text }) => plain(text));
}

export function wrapWords(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line.trimEnd());
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** As `--json` prints it, with the store in the commands. */
export function reasonJson(reason: WaitReason): object {
  return {
    ...reason,
    ...(reason.reason === "child" && { waitsFor: reason.waitsFor.map(reasonJson) }),
    ...("error" in reason && { error: errorJson(reason.error) }),
    next: reason.next.map(withStoreOption),
  };
}

function errorJson(error: unknown): unknown {
  return error instanceof Error ? { name: error.name, message: error.message } : error;
}
