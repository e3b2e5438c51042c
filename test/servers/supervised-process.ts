// SupervisedProcess: a program in its own folder, on a free loopback port. Its supervisor ends it and deletes the folder when the
// process that started it has ended.

import { fork, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LOG, type FromSupervisor, type ToSupervisor } from "./supervisor-messages.ts";
import { isAlive, signalTree, treeOf } from "./processes.ts";

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

export interface ProcessOptions {
  /** For messages and the folder's name. */
  readonly name: string;
  /** The account that runs it when tests run as root: the first one that exists. */
  readonly accounts: readonly string[];
  /** For a clean shutdown. */
  readonly stopSignal: NodeJS.Signals;
  /** For a fast end that leaves nothing on the machine. */
  readonly endSignal: NodeJS.Signals;
  /** The parent folder of its folder. */
  readonly under?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Enough for slow machines. */
const READY_MS = 120_000;

export class SupervisedProcess implements AsyncDisposable {
  readonly folder: string;
  readonly account: Account | undefined;
  /** The pid of the main process; undefined while it does not run. */
  pid: number | undefined;

  readonly #options: ProcessOptions;
  readonly #supervisor: ChildProcess;
  #holds = 0;
  #ended: Promise<string> = Promise.resolve("never started");

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.account = accountFor(options.accounts);
    this.folder = mkdtempSync(join(options.under ?? tmpdir(), `reprise-${options.name.toLowerCase()}-`));
    // The server's account must be able to enter.
    chmodSync(this.folder, 0o755);
    if (this.account !== undefined) chownSync(this.folder, this.account.uid, this.account.gid);
    const program = fileURLToPath(new URL(`./supervisor${extname(import.meta.url)}`, import.meta.url));
    this.#supervisor = fork(program, [this.folder], { detached: true, stdio: "ignore", execArgv: [] });
    this.#letGo();
  }

  /** Starts a program; it may not be ready yet when the promise resolves. */
  async launch({ command, args }: Command): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    this.#ended = ended.promise;
    const listen = (message: FromSupervisor): void => {
      if ("started" in message) {
        // Here, not after the await: the next message may already say that the program has ended.
        this.pid = message.started;
        return resolve();
      }
      if ("failed" in message) return reject(new Error(`${command} could not be started: ${message.failed}`));
      this.#supervisor.off("message", listen);
      this.pid = undefined;
      ended.resolve(message.how);
    };
    this.#supervisor.on("message", listen);
    const env = { PATH: process.env["PATH"], LC_ALL: "C", ...this.#options.env };
    const { endSignal } = this.#options;
    this.#send({ start: { command, args, env, endSignal, uid: this.account?.uid, gid: this.account?.gid } });
    await this.#hold(promise);
  }

  /** Runs a program to its end. */
  async runToEnd(what: string, command: Command): Promise<void> {
    await this.launch(command);
    const end = await this.#hold(this.#ended);
    if (end !== "code 0") throw new Error(`${this.#options.name} could not ${what} (${end}):\n${this.log()}`);
  }

  /** Repeats the check until it does not throw. */
  async untilReady(ask: () => Promise<unknown>): Promise<void> {
    const giveUpAt = performance.now() + READY_MS;
    let problem: unknown;
    while (this.pid !== undefined && performance.now() < giveUpAt) {
      try {
        await ask();
        return;
      } catch (error) {
        problem = error;
        await Promise.race([this.#ended, sleep(10)]);
      }
    }
    const how = this.pid === undefined ? `ended (${await this.#ended})` : `did not answer (${String(problem)})`;
    throw new Error(`${this.#options.name} ${how}:\n${this.log().slice(-4000)}`);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) signalTree(this.pid, signal);
  }

  async kill(): Promise<void> {
    if (this.pid === undefined) return;
    const killed = signalTree(this.pid, "SIGKILL");
    await this.#hold(this.#ended);
    while (killed.some(isAlive)) await sleep(5);
  }

  async stop(): Promise<void> {
    if (this.pid === undefined) return;
    const tree = treeOf(this.pid);
    process.kill(this.pid, this.#options.stopSignal);
    await this.#hold(this.#ended);
    while (tree.some(isAlive)) await sleep(5);
  }

  log(): string {
    const path = join(this.folder, LOG);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#supervisor.exitCode !== null || !this.#supervisor.connected) return;
    const exited = once(this.#supervisor, "exit");
    this.#send({ end: true });
    await this.#hold(exited);
  }

  /** This process may end while a server runs, but not while it waits for it. */
  async #hold<T>(waiting: Promise<T>): Promise<T> {
    this.#holds += 1;
    this.#supervisor.ref();
    this.#supervisor.channel?.ref();
    try {
      return await waiting;
    } finally {
      this.#holds -= 1;
      if (this.#holds === 0) this.#letGo();
    }
  }

  #letGo(): void {
    this.#supervisor.unref();
    this.#supervisor.channel?.unref();
  }

  #send(message: ToSupervisor): void {
    this.#supervisor.send(message);
  }
}

export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** Servers refuse to run as root. Another user who runs the tests also runs the server. */
function accountFor(names: readonly string[]): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const wanted of names) {
    const [name, , uid, gid] = lines.find((line) => line.startsWith(`${wanted}:`))?.split(":") ?? [];
    if (name !== undefined) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(`Expected one of the accounts ${names.join(", ")} on this machine; a server does not run as root.`);
}

/** Below the ephemeral ports: it must still be free when a server restarts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
