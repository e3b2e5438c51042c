// Command: helpers for the files in commands/. Every start of the program loads this file, so it imports only commander
// and the global options.
//
// A file in commands/ declares the arguments, options and help of one group. The work of a command is in a file of this
// folder, which the action imports when the command runs.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { InvalidArgumentError, type AddHelpTextContext, type Command } from "commander";
import { rememberStore, type GlobalOptions } from "./global-options.ts";

/** The work of a command: takes its arguments and options, returns the exit code. */
type Work<A extends readonly unknown[]> = (...args: A) => Promise<number>;

let exitCode = 0;

/** The exit code of the command that ran. */
export function exitCodeOfCommand(): number {
  return exitCode;
}

/** Wraps the work of a command for commander: adds the global options, loads --codec, keeps the exit code. */
export function action<A extends readonly unknown[]>(work: Work<A>): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const command = args.at(-1) as Command;
    const given = args.slice(0, -2);
    const { codec, store } = command.optsWithGlobals<{ codec?: string; store: string }>();
    await rememberStore(store);
    if (codec !== undefined) await (await import("./payload-module.ts")).usePayloadModule(codec);
    const options = { json: false, ...(command.optsWithGlobals() as Omit<GlobalOptions, "json">) };
    exitCode = await work(...((await resolvedArguments(command, given, options)) as unknown as A));
  };
}

/** With runs of mirrors replaced by the store and the id (resolve-runs.ts). Most projects have no mirrors. */
async function resolvedArguments(
  command: Command,
  given: readonly unknown[],
  options: GlobalOptions,
): Promise<readonly unknown[]> {
  const { homeOf } = await import("./home.ts");
  if (!existsSync(join(homeOf(options), "runs"))) return [...given, options];
  const { resolveRuns } = await import("./resolve-runs.ts");
  const resolved = await resolveRuns(command, given, options);
  return [...resolved.args, resolved.options];
}

export const GENERATION = "generation, for runs that used continueAsNew (default: latest)";
export const SHOW_SECRETS = "show secrets, such as values named password, instead of [redacted]";

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ reprise ${line}`).join("\n")}`;
}

/** The width of the terminal; 80 without one, and for a terminal that does not know its width. */
export function helpWidth(): number {
  return process.stdout.columns || 80;
}

/** Text after the help, wrapped at words. A line continues under its text: `  1  a problem …`. */
export function helpNotes(text: string): (context: AddHelpTextContext) => string {
  return ({ command }) => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? helpWidth();
    const help = command.createHelp();
    return text
      .split("\n")
      .map((line) => {
        const indent = /^ *(?:\S+ {2,})?/.exec(line)?.[0] ?? "";
        const wrapped = help.boxWrap(line.slice(indent.length), width - indent.length);
        return `${indent}${wrapped.replaceAll("\n", `\n${" ".repeat(indent.length)}`)}`;
      })
      .join("\n");
  };
}

export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError("Expected a whole number.");
  return value;
}

export function positiveNumber(text: string): number {
  const value = wholeNumber(text);
  if (value === 0) throw new InvalidArgumentError("Expected a whole number of 1 or more.");
  return value;
}

/** Parses a list option: values are separated by commas, and the option can be repeated. */
export function collect(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, ...text.split(",").map((part) => part.trim())];
}
