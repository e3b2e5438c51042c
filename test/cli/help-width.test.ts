// Help is wrapped at words, at the width of the terminal.

import { expect, test } from "vitest";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.ts";
import { finished, isInstalled, startOnTerminal } from "./cli-process.ts";

function helpOf(command: Command, width: number): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => width });
  command.outputHelp();
  return text;
}

function allCommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

const wordsOf = (text: string): string => text.replaceAll(/\s+/g, " ");

/** Lines that are pasted: examples, and the lines of a shell's start file. */
const isForPasting = (line: string): boolean => /^ {2}\$ |reprise completion|^Usage: /.test(line);

test.each([80, 60])("the help of every command fits %i columns and breaks no word", (width) => {
  for (const command of allCommands(createProgram())) {
    const lines = helpOf(command, width).split("\n");
    expect(lines.filter((line) => line.length > width && !isForPasting(line))).toEqual([]);
    if (width === 80) expect(lines.filter((line) => line.length > width)).toEqual([]);
    expect(wordsOf(lines.join("\n"))).toBe(wordsOf(helpOf(command, 1_000)));
  }
});

// Needs `script` of util-linux for a pseudo-terminal.
test.skipIf(!isInstalled("script"))(
  "the help uses the width of the terminal, and 80 columns if it has none",
  async () => {
    for (const [columns, expected] of [
      [44, "  --once                 print one snapshot\n                         and exit\n"],
      [0, "Show a live view of workers, queues, throughput, the oldest pending work and\nwork no"],
    ] as const) {
      const { stdout } = await finished(startOnTerminal(["top", "--help"], { columns }));
      expect(stdout.replaceAll("\r", "")).toContain(expected);
    }
  },
);
