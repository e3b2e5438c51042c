// Fleet: worker processes that a rig kills, stops, slows down and restarts.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { signalTree } from "../servers/processes.ts";
import type { Work } from "./worker.ts";

const PROGRAM = fileURLToPath(new URL("./worker.ts", import.meta.url));
/** Compiled once, by the first process. */
const CACHE = fileURLToPath(new URL("../../.reprise/compile-cache", import.meta.url));
const KEPT_CHARACTERS = 200_000;

export interface SpawnOptions {
  /** A program that runs the worker: `["strace", …]`. */
  readonly wrap?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #said = "";
  readonly heard: unknown[] = [];
  readonly #isWrapped: boolean;

  constructor({ wrap = [], env = {} }: SpawnOptions) {
    const [command, ...args] = [...wrap, process.execPath, "--conditions=reprise-source", PROGRAM];
    this.#isWrapped = wrap.length > 0;
    this.#child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: { ...process.env, NODE_COMPILE_CACHE: CACHE, ...env },
    });
    const listen = (chunk: Buffer): void => {
      this.#said = `${this.#said}${chunk.toString()}`.slice(-KEPT_CHARACTERS);
    };
    this.#child.stdout?.on("data", listen);
    this.#child.stderr?.on("data", listen);
    // Sending to a process that has just died fails; its exit event reports that.
    this.#child.on("error", () => undefined);
    this.#child.on("message", (message) => this.heard.push(message));
    this.#exited = once(this.#child, "exit");
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Stopped by a signal, until another one resumes it. */
  get isStopped(): boolean {
    try {
      const stat = readFileSync(`/proc/${this.pid}/stat`, "latin1");
      return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
    } catch {
      return false;
    }
  }

  /** What killed it, or undefined. */
  get signalCode(): NodeJS.Signals | null {
    return this.#child.signalCode;
  }

  /** Its output and its log. */
  get said(): string {
    return this.#said;
  }

  /** Starts its worker; resolves when it is ready. */
  async work(work: Work): Promise<void> {
    this.send(work);
    await this.says("ready");
  }

  /** Starts its worker, or is killed before. */
  send(work: Work): void {
    this.#child.send(work);
  }

  /** "here": the program is loaded. "ready": the worker runs. */
  async says(word: "here" | "ready"): Promise<void> {
    while (!this.heard.includes(word)) {
      if (this.isOver) throw new Error(`A worker ended before it was ${word}:\n${this.#said}`);
      await Promise.race([once(this.#child, "message"), this.#exited]);
    }
  }

  /** The time of its wall clock. */
  async time(): Promise<number> {
    const answered = once(this.#child, "message");
    this.#child.send("time?");
    const [{ time }] = (await answered) as [{ readonly time: number }];
    return time;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(): Promise<void> {
    await this.#exited;
  }

  async kill(): Promise<void> {
    // Killing the wrapper program does not kill the worker.
    if (this.#isWrapped && !this.isOver) signalTree(this.pid, "SIGKILL");
    else this.#child.kill("SIGKILL");
    await this.#exited;
  }
}

/** Several processes with the same definitions. Disposing ends all of them. */
export class Fleet implements AsyncDisposable {
  readonly #work: Work;
  readonly #options: SpawnOptions;
  readonly workers: WorkerProcess[] = [];

  constructor(work: Work, options: SpawnOptions = {}) {
    this.#work = work;
    this.#options = options;
  }

  static async of(count: number, work: Work, options?: SpawnOptions): Promise<Fleet> {
    const fleet = new Fleet(work, options);
    try {
      await Promise.all(Array.from({ length: count }, () => fleet.add()));
    } catch (error) {
      await fleet[Symbol.asyncDispose]();
      throw error;
    }
    return fleet;
  }

  async add(options: SpawnOptions = this.#options, work: Work = this.#work): Promise<WorkerProcess> {
    const worker = new WorkerProcess(options);
    this.workers.push(worker);
    await worker.work(work);
    return worker;
  }

  /** Kills one process and starts another in its place. */
  async replace(index: number): Promise<void> {
    const worker = new WorkerProcess(this.#options);
    const [old] = this.workers.splice(index, 1, worker);
    await old?.kill();
    await worker.work(this.#work);
  }

  /** The output of all processes. */
  get said(): string {
    return this.workers.map(({ said }) => said).join("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.workers.map((worker) => (worker.isOver ? undefined : worker.kill())));
  }
}
