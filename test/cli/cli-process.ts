// CLI process: runs the command line in a child process, as a shell does.

import { fork, spawn, spawnSync, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { CommandRequest } from "./cli-host.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const DEFINITIONS = join(ROOT, "test/cli/definitions.ts");

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Width of the pseudo-terminal; by default 100. */
  readonly columns?: number;
}

export function environment(): NodeJS.ProcessEnv {
  const { NO_COLOR: _no, FORCE_COLOR: _force, REPRISE_STORE: _store, ...env } = process.env;
  return env;
}

export function startNode(
  args: readonly string[],
  options: CliOptions = {},
): ChildProcessByStdio<Writable, Readable, Readable> {
  const child = spawn(process.execPath, ["--conditions=reprise-source", ...args], {
    cwd: options.cwd ?? ROOT,
    env: { ...environment(), ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.end(options.input ?? "");
  return child;
}

export function startCli(args: readonly string[], options: CliOptions = {}): ReturnType<typeof startNode> {
  return startNode([join(ROOT, "src/cli/main.ts"), ...args], options);
}

export async function finished(child: ReturnType<typeof startNode>): Promise<Finished> {
  const exited = once(child, "exit");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await exited) as [number | null];
  return { code, stdout, stderr };
}

export function cli(args: readonly string[], options: CliOptions = {}): Promise<Finished> {
  return finished(startCli(args, options));
}

interface Host {
  readonly child: ChildProcess;
  readonly asked: { readonly resolve: (finished: Finished) => void; readonly reject: (error: Error) => void }[];
}

let host: Host | undefined;

/** Shared by the tests of this process. */
function startHost(): Host {
  const child = fork(join(ROOT, "test/cli/cli-host.ts"), {
    execArgv: ["--conditions=reprise-source"],
    env: environment(),
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const started: Host = { child, asked: [] };
  child.on("message", (finished) => started.asked.shift()?.resolve(finished as Finished));
  child.once("exit", (code) => {
    host = undefined;
    for (const { reject } of started.asked.splice(0)) reject(new Error(`A command ended its process with ${code}.`));
  });
  child.unref();
  child.channel?.unref();
  return started;
}

/**
 * Like `cli`, but faster: one process runs many command lines. For tests of output, not of the start and the end of a
 * process. A command that leaves state in its process needs `cli`.
 */
export function command(args: readonly string[], options: CliOptions = {}): Promise<Finished> {
  if (options.env !== undefined || options.input !== undefined || args.includes("--codec")) return cli(args, options);
  const { child, asked } = (host ??= startHost());
  return new Promise((resolve, reject) => {
    asked.push({ resolve, reject });
    child.send({ args, cwd: options.cwd ?? ROOT } satisfies CommandRequest);
  });
}

/** Whether the program is installed. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

/** The command line on a pseudo-terminal. Standard output contains everything that the terminal received. */
export function startOnTerminal(args: readonly string[], options: CliOptions = {}): ReturnType<typeof startNode> {
  const command = [process.execPath, "--conditions=reprise-source", join(ROOT, "src/cli/main.ts"), ...args];
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  // Without CI: on a build server Node prints no colors.
  const { CI: _build, ...env } = environment();
  // exec: a shell in between would receive Ctrl-C too, and dash then exits with 130 in any case.
  const child = spawn("script", ["-qefc", `stty cols ${options.columns ?? 100} rows 40; exec ${quoted}`, "/dev/null"], {
    cwd: options.cwd ?? ROOT,
    env: { ...env, TERM: "xterm", ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  if (options.input !== undefined) child.stdin.write(options.input);
  return child;
}

/** Resolves when the process has printed `words` on either stream; `finished` still returns the whole output. */
export async function waitForOutput(child: ReturnType<typeof startNode>, words: string): Promise<void> {
  await matchOutput(child, { exec: (output) => (output.includes(words) ? [words] : null) }, words);
}

/** What the pattern matches in the output from now on. */
export function matchOutput(
  child: ReturnType<typeof startNode>,
  pattern: { exec(output: string): readonly string[] | null },
  name: unknown = pattern,
): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    let output = "";
    const listen = (chunk: unknown): void => {
      output += String(chunk);
      const match = pattern.exec(output);
      if (match !== null) resolve(match);
    };
    child.stderr.on("data", listen);
    child.stdout.on("data", listen);
    child.once("exit", () =>
      reject(new Error(`The process ended without printing "${String(name)}". Its output: ${output}`)),
    );
  });
}

export class TemporaryFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "reprise-cli-test-"));

  file(name: string): string {
    return join(this.path, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export function jsonLines(stdout: string): Record<string, any>[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, any>);
}
