// Fleet: worker processes that are killed, stopped, slowed down, and started again.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { signalTree } from "../servers/processes.ts";
import type { Work } from "./worker.ts";

const PROGRAM = fileURLToPath(new URL("./worker.ts", import.meta.url));
/** Compiled once, by the first of them. */
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
    // A word to somebody who has just died; that it died is seen by its exit.
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

  /** By a signal, until it gets another. */
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

  /** What it wrote to its output and its log. */
  get said(): string {
    return this.#said;
  }

  /** It begins its work; resolves when it has said that it does. */
  async work(work: Work): Promise<void> {
    this.send(work);
    await this.says("ready");
  }

  /** It begins its work, or does not: it may be killed before. */
  send(work: Work): void {
    this.#child.send(work);
  }

  /** "here": its program is loaded. "ready": it works. */
  async says(word: "here" | "ready"): Promise<void> {
    while (!this.heard.includes(word)) {
      if (this.isOver) throw new Error(`A worker ended before it was ${word}:\n${this.#said}`);
      await Promise.race([once(this.#child, "message"), this.#exited]);
    }
  }

  /** What its wall clock says. */
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
    // What runs a worker dies without taking it along.
    if (this.#isWrapped && !this.isOver) signalTree(this.pid, "SIGKILL");
    else this.#child.kill("SIGKILL");
    await this.#exited;
  }
}

/** Several of them, all with the same work. Whoever leaves the block leaves none behind. */
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

  /** Kills one and starts another in its place. */
  async replace(index: number): Promise<void> {
    const worker = new WorkerProcess(this.#options);
    const [old] = this.workers.splice(index, 1, worker);
    await old?.kill();
    await worker.work(this.#work);
  }

  /** What all of them have said. */
  get said(): string {
    return this.workers.map(({ said }) => said).join("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.workers.map((worker) => (worker.isOver ? undefined : worker.kill())));
  }
}
