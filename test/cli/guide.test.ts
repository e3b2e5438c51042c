// The guide names every command, with an example and its JSON; the help of every command has examples.

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

/** Those that do something, `schedule list` and not `schedule`; hidden ones are not for people. */
function leavesOf(command: Command, path: readonly string[] = []): Shown[] {
  const shown = command.createHelp().visibleCommands(command);
  const children = shown.filter((child) => child.name() !== "help");
  if (children.length === 0) return [{ path: path.join(" "), command }];
  return children.flatMap((child) => leavesOf(child, [...path, child.name()]));
}

const commands = leavesOf(createProgram());

test("there are commands to look for", () => {
  expect(commands.length).toBeGreaterThan(10);
});

describe.each(commands.map(({ path, command }) => [path, command] as const))("%s", (path, command) => {
  test("stands in a table of the guide", () => {
    expect(guide).toMatch(new RegExp(`^\\| \`${path}(?: [^\`]*)?\` \\|`, "m"));
  });

  test("has an example in the guide", () => {
    expect(shell).toMatch(new RegExp(`^reprise ${path}(?: |$)`, "m"));
  });

  test("says in the guide what its JSON has", () => {
    expect(jsonSection).toMatch(new RegExp(`\`${path}\``));
  });

  test("has examples in its help, each of which begins with itself", () => {
    let text = "";
    command.configureOutput({ writeOut: (chunk) => void (text += chunk) });
    command.outputHelp();
    const lines = Array.from(text.matchAll(/^ {2}\$ (.*)$/gm), (match) => match[1] ?? "");
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(new RegExp(`^reprise ${path}(?: |$)`));
  });
});

test("every command the guide's examples use is there", () => {
  const paths = commands.map(({ path }) => path);
  for (const [, line = ""] of shell.matchAll(/^reprise (.*)$/gm))
    expect(
      paths.some((path) => line === path || line.startsWith(`${path} `)),
      line,
    ).toBe(true);
});
