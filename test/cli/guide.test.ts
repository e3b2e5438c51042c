// The guide documents every command with an example and its JSON; the help of every command has examples and fits 80
// columns.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { ROOT } from "./cli-process.ts";

const guide = readFileSync(join(ROOT, "docs/guides/cli.md"), "utf8");
const [, jsonSection = ""] = guide.split("\n## JSON\n");
const shell = Array.from(guide.matchAll(/^```sh\n([\s\S]*?)^```/gm), (match) => match[1] ?? "").join("");

interface Shown {
  readonly path: string;
  readonly command: Command;
}

/** The commands that do something: `schedule list`, not `schedule`, but also `key`, which has subcommands. Hidden commands are omitted. */
function leavesOf(command: Command, path: readonly string[] = []): Shown[] {
  const shown = command.createHelp().visibleCommands(command);
  const children = shown.filter((child) => child.name() !== "help");
  if (children.length === 0) return [{ path: path.join(" "), command }];
  const own = "_actionHandler" in command && command._actionHandler ? [{ path: path.join(" "), command }] : [];
  return [...own, ...children.flatMap((child) => leavesOf(child, [...path, child.name()]))];
}

const commands = leavesOf(createProgram());

test("the list of commands is not empty", () => {
  expect(commands.length).toBeGreaterThan(10);
});

describe.each(commands.map(({ path, command }) => [path, command] as const))("%s", (path, command) => {
  test("is in a table of the guide", () => {
    expect(guide).toMatch(new RegExp(`^\\| \`${path}(?: [^\`]*)?\` \\|`, "m"));
  });

  test("has an example in the guide", () => {
    expect(shell).toMatch(new RegExp(`^reprise ${path}(?: |$)`, "m"));
  });

  test("has its JSON fields in the guide", () => {
    expect(jsonSection).toMatch(new RegExp(`\`${path}\``));
  });

  test("has examples in its help that start with the command", () => {
    let text = "";
    command.configureOutput({ writeOut: (chunk) => void (text += chunk) });
    command.outputHelp();
    const lines = Array.from(text.matchAll(/^ {2}\$ (.*)$/gm), (match) => match[1] ?? "");
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(new RegExp(`^reprise ${path}(?: |$)`));
  });
});

test("the examples of the guide use existing commands", () => {
  const paths = commands.map(({ path }) => path);
  for (const [, line = ""] of shell.matchAll(/^reprise (.*)$/gm))
    expect(
      paths.some((path) => line === path || line.startsWith(`${path} `)),
      line,
    ).toBe(true);
});

function allCommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

test.each(allCommands(createProgram()).map((command) => [command.name(), command] as const))(
  "the help of %s fits 80 columns",
  (_name, command) => {
    let text = "";
    command.configureOutput({
      writeOut: (chunk) => void (text += chunk),
      getOutHelpWidth: () => 80,
    });
    command.outputHelp();
    expect(text.split("\n").filter((line) => line.length > 80)).toEqual([]);
  },
);
