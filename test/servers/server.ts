// Server: one real server, in its own folder (by default in the temporary directory), on a free loopback port, with
// production's durability. Its supervisor ends it with the process that started it.

import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort, SupervisedProcess, type Command } from "./supervised-process.ts";
import { KINDS, versionOn, whyNot, type ServerKind, type Settings } from "./kinds.ts";

export interface ServerOptions {
  /** Settings of the server, by their names: `{ fsync: "off" }`, `{ "innodb-flush-log-at-trx-commit": 2 }`. */
  readonly settings?: Settings;
  /** The parent folder of the server's folder: `fastFolder()`, or a file system that can be filled. */
  readonly under?: string;
  /** A program that runs the server: `["strace", "-f", …]`. */
  readonly wrap?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A free port by default. A server that replaces another one uses its port. */
  readonly port?: number;
  /** Creates its initial files, if it does not start empty: `pg_basebackup` for a standby. */
  readonly makeData?: (data: string) => Command;
}

export interface TestServer extends AsyncDisposable {
  readonly kind: ServerKind;
  readonly version: string;
  readonly port: number;
  /** The address of the default database. Stays the same after a restart. */
  readonly url: string;
  readonly folder: string;
  /** The pid of the main process; undefined while it does not run. */
  readonly pid: number | undefined;
  /** The address of another database on this server. */
  urlOf(database: string): string;
  /** Runs statements on the default database. */
  run(...statements: readonly string[]): Promise<void>;
  /** Sends a signal to all of its processes: SIGSTOP suspends it, SIGCONT resumes it. */
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL to all of its processes at once; resolves when none is left. */
  kill(): Promise<void>;
  /** A clean shutdown. */
  stop(): Promise<void>;
  /** Restarts it on its data, with other settings if given. */
  start(settings?: Settings): Promise<void>;
  /** Its log so far. */
  log(): string;
}

/** Starts a private server, which may be killed. It ends with `await using`, or with this process. */
export async function startServer(kind: ServerKind, options: ServerOptions = {}): Promise<TestServer> {
  const obstacle = whyNot(kind);
  if (obstacle !== undefined) throw new Error(obstacle);
  const server = new KeptServer(kind, options);
  try {
    await server.prepare();
    await server.start();
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

class KeptServer implements TestServer {
  readonly kind: ServerKind;
  port = 0;

  readonly #options: ServerOptions;
  readonly #process: SupervisedProcess;
  #settings: Settings;

  constructor(kind: ServerKind, options: ServerOptions) {
    this.kind = kind;
    this.#options = options;
    this.#settings = options.settings ?? {};
    const { accounts, stopSignal, endSignal, name } = KINDS[kind];
    const { under, env } = options;
    this.#process = new SupervisedProcess({ name, accounts, stopSignal, endSignal, under, env });
  }

  get folder(): string {
    return this.#process.folder;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get version(): string {
    return versionOn(this.kind) ?? "";
  }

  get url(): string {
    return KINDS[this.kind].url(this.port);
  }

  urlOf(database: string): string {
    return KINDS[this.kind].url(this.port, database);
  }

  async run(...statements: readonly string[]): Promise<void> {
    await KINDS[this.kind].run(this.url, ...statements);
  }

  async prepare(): Promise<void> {
    const { makeData, port } = this.#options;
    if (makeData === undefined) execFileSync("cp", ["-a", await this.#template(), this.#data]);
    else await this.#process.runToEnd("make its files", makeData(this.#data));
    this.port = port ?? (await freePort());
  }

  async start(settings: Settings = this.#settings): Promise<void> {
    this.#settings = settings;
    const { command, args } = KINDS[this.kind].serve(this.#data, this.port, settings);
    const [program = command, ...rest] = [...(this.#options.wrap ?? []), command, ...args];
    await this.#process.launch({ command: program, args: rest });
    await this.#process.untilReady(() => this.run("select 1"));
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal);
  }

  async kill(): Promise<void> {
    await this.#process.kill();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  log(): string {
    return this.#process.log();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  /** Creating the initial files takes seconds, copying them does not: they are kept from run to run. */
  async #template(): Promise<string> {
    const kind = KINDS[this.kind];
    const how = kind.initialise("").args.join(" ");
    const key = hash("sha256", `${this.version} ${this.#process.account?.name} ${how}`).slice(0, 12);
    const made = join(TEMPLATES, `${this.kind}-${key}`);
    if (existsSync(made)) return made;
    await this.#process.runToEnd("make its first files", kind.initialise(this.#data));
    mkdirSync(TEMPLATES, { recursive: true });
    const draft = mkdtempSync(join(TEMPLATES, "draft-"));
    execFileSync("cp", ["-a", this.#data, join(draft, "data")]);
    rmSync(this.#data, { recursive: true });
    try {
      renameSync(join(draft, "data"), made);
    } catch (error) {
      // Another process was first.
      if (!existsSync(made)) throw error;
    }
    rmSync(draft, { recursive: true, force: true });
    return made;
  }
}

const TEMPLATES = fileURLToPath(new URL("../../.reprise/servers", import.meta.url));

const MEMORY = "/dev/shm";

/**
 * A folder in memory if the machine has room for one, else the temporary directory. What a killed process wrote is
 * kept, and the server syncs as on a disk, but a sync costs nothing: tests take a tenth of the time on a busy disk.
 */
export function fastFolder(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= 2 ** 31 ? MEMORY : tmpdir();
}
