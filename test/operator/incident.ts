// Incident: a store in a folder of its own, worker processes, and an operator: `reprise show` on a terminal with 80 columns, and the
// commands that it suggests, in a shell.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import {
  cli,
  finished,
  jsonLines,
  ROOT,
  startCli,
  startOnTerminal,
  TemporaryFolder,
  waitForOutput,
  type Finished,
} from "../cli/cli-process.ts";

export const DEFINITIONS = join(ROOT, "test/operator/definitions.ts");
/** Of a worker that dies: short, so that a takeover takes a second. */
const SHORT_LEASE = "1s";
/** Of a worker that lives: `show` says so, however busy the machine is. */
const LONG_LEASE = "1 minute";

export interface Shown {
  /** Without line breaks and colors, as one line of words. */
  readonly words: string;
  readonly json: Record<string, any>;
  /** The first suggested command of the explanation or, of a failed or stopped run, of its error. */
  readonly next: string;
}

export class Incident implements AsyncDisposable {
  readonly #folder: TemporaryFolder | undefined;
  readonly path: string;
  readonly #workers: ReturnType<typeof startCli>[] = [];

  /** `path`: a folder that the caller owns. */
  constructor(path?: string) {
    this.#folder = path === undefined ? new TemporaryFolder() : undefined;
    this.path = path ?? this.#folder!.path;
  }

  file(name: string): void {
    writeFileSync(join(this.path, name), "");
  }

  async on(...args: readonly string[]): Promise<Finished> {
    return cli(args, { cwd: this.path });
  }

  /** Starts a run without a worker. */
  async start(id: string, name: string, { input, file = DEFINITIONS, more = [] }: StartOptions = {}): Promise<void> {
    const given = input === undefined ? [] : [JSON.stringify(input)];
    const { code, stderr } = await this.on("run", file, name, ...given, "--detach", "--id", id, ...more);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
  }

  /** Resolves when the worker prints `words`. */
  async worker({ file = DEFINITIONS, words = "started", lease = LONG_LEASE }: WorkerOptions = {}): Promise<
    ReturnType<typeof startCli>
  > {
    const child = startCli(["worker", file, "--lease", lease], { cwd: this.path });
    this.#workers.push(child);
    await waitForOutput(child, words);
    return child;
  }

  /** Starts a worker whose code kills it, and resolves when it is dead. */
  async workerThatDies(): Promise<void> {
    const child = startCli(["worker", DEFINITIONS, "--lease", SHORT_LEASE], { cwd: this.path });
    child.stdout.resume();
    child.stderr.resume();
    const [, signal] = (await once(child, "exit")) as [number | null, string | null];
    expect(signal).toBe("SIGKILL");
  }

  async show(id: string): Promise<Shown> {
    const onTerminal = startOnTerminal(["show", id], { cwd: this.path, columns: 80 });
    const { stdout } = await finished(onTerminal);
    // oxlint-disable-next-line no-control-regex -- colors of the terminal
    const lines = stdout.replace(/\u001b\[[\d;]*m/g, "").split(/\r?\n/);
    // A suggested command is one line, so that it can be pasted, and so is the place of a stack, which has the path of this repository.
    for (const line of lines) if (!/next: |^ *at /.test(line)) expect(line.length, line).toBeLessThanOrEqual(80);
    const [json] = jsonLines((await this.on("show", id, "--json")).stdout);
    const error = (json!["error"] as { readonly next: string } | null)?.next;
    const suggested = lines.find((line) => line.includes("next: "))?.replace(/^ *next: /, "");
    return { words: lines.join(" ").replace(/\s+/g, " "), json: json!, next: error ?? suggested ?? "" };
  }

  /** Runs a suggested command in a shell, with `reprise` and the values that the placeholders stand for. */
  async run(command: string, values: Readonly<Record<string, string>> = {}): Promise<Finished> {
    const filled = Object.entries(values).reduce((line, [name, value]) => line.replaceAll(name, value), command);
    const main = `'${process.execPath}' --conditions=reprise-source '${join(ROOT, "src/cli/main.ts")}'`;
    const child = spawn("sh", ["-c", `reprise() { ${main} "$@"; }\n${filled}`], {
      cwd: this.path,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exited = once(child, "exit");
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = (await exited) as [number | null];
    expect(code, `${filled}\n${stdout}\n${stderr}`).toBe(0);
    return { code, stdout, stderr };
  }

  /** Starts the worker that a suggested command names. */
  async runWorker(command: string, file = DEFINITIONS): Promise<void> {
    expect(command).toMatch(/^reprise worker <file>/);
    const args = command
      .replace(/^reprise /, "")
      .replace("<file>", file)
      .split(" ");
    const child = startCli([...args, "--lease", LONG_LEASE], { cwd: this.path });
    this.#workers.push(child);
    await waitForOutput(child, "started");
  }

  /** Waits for the end of a run, with the command that does so. */
  async completes(id: string): Promise<void> {
    const { code, stdout } = await this.on("show", id, "--watch");
    expect(code, stdout).toBe(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#workers) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
    this.#folder?.[Symbol.dispose]();
  }
}

interface StartOptions {
  readonly input?: unknown;
  readonly file?: string;
  readonly more?: readonly string[];
}

interface WorkerOptions {
  readonly lease?: string;
  readonly file?: string;
  readonly words?: string;
}
