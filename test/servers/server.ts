// One real server: in a folder of its own, by default on the disk for temporary files, on a free loopback port, at the
// durability it would have in production. Its keeper ends it with the process that started it.

import { execFileSync, fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { hash, randomInt } from "node:crypto";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { KINDS, versionOn, whyNot, type Command, type ServerKind, type Settings } from "./kinds.ts";
import { LOG, type FromKeeper, type ToKeeper } from "./launch.ts";
import { isAlive, signalTree, treeOf } from "./processes.ts";

export interface ServerOptions {
  /** The server's own settings, by its own names: `{ fsync: "off" }`, `{ "innodb-flush-log-at-trx-commit": 2 }`. */
  readonly settings?: Settings;
  /** The folder in which the server's folder is made: `fastFolder()`, or a file system that can be filled. */
  readonly under?: string;
  /** A program that runs the server: `["strace", "-f", …]`. */
  readonly wrap?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface TestServer extends AsyncDisposable {
  readonly kind: ServerKind;
  readonly version: string;
  readonly port: number;
  /** Of the database that is always there. Stays the same when the server is started again. */
  readonly url: string;
  readonly folder: string;
  /** Of the process that the others descend from; undefined while it does not run. */
  readonly pid: number | undefined;
  /** The address of another database on this server. */
  urlOf(database: string): string;
  /** Runs statements on the database that is always there. */
  run(...statements: readonly string[]): Promise<void>;
  /** Sends a signal to all of its processes: SIGSTOP makes it deaf, SIGCONT lets it go on. */
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL to all of its processes at once; resolves when none is left. */
  kill(): Promise<void>;
  /** A clean shutdown. */
  stop(): Promise<void>;
  /** Starts it again on the data it left, with other settings if they are given. */
  start(settings?: Settings): Promise<void>;
  /** What it has said so far. */
  log(): string;
}

/** A server for the caller alone, which may be killed. Ends with `await using`, or with this process. */
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

/** For the slowest of machines. */
const READY_MS = 120_000;

class KeptServer implements TestServer {
  readonly kind: ServerKind;
  readonly folder: string;
  port = 0;
  pid: number | undefined;

  readonly #options: ServerOptions;
  readonly #account: Account | undefined;
  readonly #keeper: ChildProcess;
  #settings: Settings;
  #holds = 0;
  #ended: Promise<string> = Promise.resolve("never started");

  constructor(kind: ServerKind, options: ServerOptions) {
    this.kind = kind;
    this.#options = options;
    this.#settings = options.settings ?? {};
    this.#account = accountFor(KINDS[kind].accounts);
    this.folder = mkdtempSync(join(options.under ?? tmpdir(), `reprise-${kind}-`));
    // Its own account must be able to enter.
    chmodSync(this.folder, 0o755);
    if (this.#account !== undefined) chownSync(this.folder, this.#account.uid, this.#account.gid);
    const program = fileURLToPath(new URL(`./keeper${extname(import.meta.url)}`, import.meta.url));
    this.#keeper = fork(program, [this.folder], { detached: true, stdio: "ignore", execArgv: [] });
    this.#letGo();
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
    const made = await this.#template();
    execFileSync("cp", ["-a", made, this.#data]);
    this.port = await freePort();
  }

  async start(settings: Settings = this.#settings): Promise<void> {
    this.#settings = settings;
    const { command, args } = KINDS[this.kind].serve(this.#data, this.port, settings);
    const [program = command, ...rest] = [...(this.#options.wrap ?? []), command, ...args];
    await this.#launch({ command: program, args: rest });
    await this.#untilReady();
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
    process.kill(this.pid, KINDS[this.kind].stopSignal);
    await this.#hold(this.#ended);
    while (tree.some(isAlive)) await sleep(5);
  }

  log(): string {
    const path = join(this.folder, LOG);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#keeper.exitCode !== null || !this.#keeper.connected) return;
    const exited = once(this.#keeper, "exit");
    this.#tell({ end: true });
    await this.#hold(exited);
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  /** Making the first files takes seconds, copying them does not: they are kept from run to run. */
  async #template(): Promise<string> {
    const kind = KINDS[this.kind];
    const how = kind.initialise("").args.join(" ");
    const key = hash("sha256", `${this.version} ${this.#account?.name} ${how}`).slice(0, 12);
    const made = join(TEMPLATES, `${this.kind}-${key}`);
    if (existsSync(made)) return made;
    await this.#launch(kind.initialise(this.#data));
    const end = await this.#hold(this.#ended);
    if (end !== "code 0") throw new Error(`${kind.name} could not make its first files (${end}):\n${this.log()}`);
    mkdirSync(TEMPLATES, { recursive: true });
    const draft = mkdtempSync(join(TEMPLATES, "draft-"));
    execFileSync("cp", ["-a", this.#data, join(draft, "data")]);
    rmSync(this.#data, { recursive: true });
    try {
      renameSync(join(draft, "data"), made);
    } catch (error) {
      // Somebody else was first.
      if (!existsSync(made)) throw error;
    }
    rmSync(draft, { recursive: true, force: true });
    return made;
  }

  async #launch({ command, args }: Command): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const ended = Promise.withResolvers<string>();
    this.#ended = ended.promise;
    const listen = (message: FromKeeper): void => {
      if ("started" in message) return resolve(message.started);
      if ("failed" in message) return reject(new Error(`${command} could not be started: ${message.failed}`));
      this.#keeper.off("message", listen);
      this.pid = undefined;
      ended.resolve(message.how);
    };
    this.#keeper.on("message", listen);
    const env = { PATH: process.env["PATH"], LC_ALL: "C", ...this.#options.env };
    const { endSignal } = KINDS[this.kind];
    this.#tell({ start: { command, args, env, endSignal, uid: this.#account?.uid, gid: this.#account?.gid } });
    this.pid = await this.#hold(promise);
  }

  async #untilReady(): Promise<void> {
    const giveUpAt = performance.now() + READY_MS;
    let problem: unknown;
    while (this.pid !== undefined && performance.now() < giveUpAt) {
      try {
        return await this.run("select 1");
      } catch (error) {
        problem = error;
        await Promise.race([this.#ended, sleep(10)]);
      }
    }
    const how = this.pid === undefined ? `ended (${await this.#ended})` : `did not answer (${String(problem)})`;
    throw new Error(`${KINDS[this.kind].name} ${how}:\n${this.log().slice(-4000)}`);
  }

  /** This process may end while a server runs, but not while it waits for one. */
  async #hold<T>(waiting: Promise<T>): Promise<T> {
    this.#holds += 1;
    this.#keeper.ref();
    this.#keeper.channel?.ref();
    try {
      return await waiting;
    } finally {
      this.#holds -= 1;
      if (this.#holds === 0) this.#letGo();
    }
  }

  #letGo(): void {
    this.#keeper.unref();
    this.#keeper.channel?.unref();
  }

  #tell(message: ToKeeper): void {
    this.#keeper.send(message);
  }
}

const TEMPLATES = fileURLToPath(new URL("../../.reprise/servers", import.meta.url));

const MEMORY = "/dev/shm";

/**
 * A folder in memory where the machine has room for one, else the one for temporary files. What a killed process wrote is
 * still there, and the server syncs as it would on a disk; but syncing costs nothing, which on a busy disk is a tenth.
 */
export function fastFolder(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= 2 ** 31 ? MEMORY : tmpdir();
}

interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** Servers refuse to be root. Whoever else runs the tests runs the server, too. */
function accountFor(names: readonly string[]): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const wanted of names) {
    const [name, , uid, gid] = lines.find((line) => line.startsWith(`${wanted}:`))?.split(":") ?? [];
    if (name !== undefined) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(`Expected one of the accounts ${names.join(", ")} on this machine; a server does not run as root.`);
}

/** Below the ports that the system gives to outgoing connections: it must still be free when a server starts again. */
async function freePort(): Promise<number> {
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
