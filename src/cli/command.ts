// Command: what the registrations of all commands share. Light, because every start of the program loads it.

import { InvalidArgumentError, type Command } from "commander";

/** What a command's work is given after its arguments; `exitCode` is what the process ends with. */
export type Work<A extends readonly unknown[]> = (...args: A) => Promise<number>;

let exitCode = 0;

/** How the command that ran wants the process to end. */
export function exitCodeOfCommand(): number {
  return exitCode;
}

/** Runs a command with its options and those of the program. */
export function action<A extends readonly unknown[]>(work: Work<A>): (...args: unknown[]) => Promise<void> {
  return async (...args) => {
    const command = args.at(-1) as Command;
    const given = args.slice(0, -2);
    const { codec } = command.optsWithGlobals<{ codec?: string }>();
    if (codec !== undefined) await (await import("./payload-module.ts")).usePayloadModule(codec);
    exitCode = await work(...([...given, { json: false, ...command.optsWithGlobals() }] as unknown as A));
  };
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ reprise ${line}`).join("\n")}`;
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

/** Several values: with commas, by repeating the option, or both. */
export function collect(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, ...text.split(",").map((part) => part.trim())];
}
