// reprise dev: runs a worker in a child process and restarts it when a file it has loaded changes.
//
// dev.D1. One child at a time: the old child has drained before the new one starts, so they never hold the same run.
// dev.D2. A child that cannot load its file, or exits, is restarted after the next change, not earlier. One that a signal killed, such as
//   by the system for its memory, is restarted without a change: at once, and after a growing delay if that happens again.
// dev.D3. The dashboard has one address over all restarts (dev-server.V1).

import { fork, type ChildProcess } from "node:child_process";
import { existsSync, statSync, watch, type FSWatcher } from "node:fs";
import { dirname, resolve } from "node:path";
import { backoffMs, formatMs, RepriseError, systemClock, systemTimers } from "../base/index.ts";
import { DevServer } from "./dev-server.ts";
import { ANNOUNCE_VARIABLE, DRAIN, PORT_VARIABLE, type DevMessage } from "./dev-protocol.ts";
import { shownUrl } from "../stores/index.ts";
import { globalArguments, globalEnv, type GlobalOptions } from "./global-options.ts";
import { logLines } from "./log-lines.ts";
import { paint } from "./output.ts";
import { onInterrupt, STOPPING } from "./signals.ts";
import { plain } from "./text.ts";
import { refuseMemoryStore } from "./worker.ts";

/** Editors write a file in several steps. */
const SETTLE_MS = 80;
/** A worker that a signal kills later than this after its start is restarted at once. */
const STABLE_MS = 60_000;
const RESTARTS = { maxAttempts: Infinity, baseDelay: "1 s", maxDelay: "30 s" } as const;

export interface DevOptions extends GlobalOptions {
  /** Default: 7420, or any free one if that is taken. */
  readonly port?: number;
  readonly dashboard: boolean;
}

const DEFAULT_PORT = 7420;

export async function dev(file: string, options: DevOptions): Promise<number> {
  refuseMemoryStore(options.store);
  const path = resolve(file);
  if (!existsSync(path)) throw new RepriseError("USAGE", `There is no file ${path}. Check the path.`);
  const log = logLines(options.json);
  const args = ["dev-worker", path, ...globalArguments(options)];
  const { port = DEFAULT_PORT } = options;
  const server = options.dashboard
    ? await DevServer.open(port, options.port !== undefined, path, options, log)
    : undefined;
  let child: ChildProcess | undefined;
  let exited: Promise<void> = Promise.resolve();
  let stopping = false;
  let restarting: Promise<void> | undefined;
  let startedAt = systemClock.now();
  /** How many workers in a row were killed soon after their start. */
  let kills = 0;
  let cancelStart: (() => void) | undefined;

  const start = (): void => {
    startedAt = systemClock.now();
    const started = fork(process.argv[1] ?? "", args, { env: { ...globalEnv(options), ...serverEnv(server) } });
    child = started;
    started.on("message", (message: DevMessage) => {
      if (message.files !== undefined) watched.set([path, ...message.files]);
      server?.onMessage(started, message);
    });
    exited = new Promise((resolveExited) => {
      started.once("exit", (code, signal) => {
        if (child === started) child = undefined;
        // dev.D2
        if (!stopping && restarting === undefined) {
          if (signal === null) onExited(code);
          else onKilled(signal);
        }
        resolveExited();
      });
    });
  };
  const onExited = (code: number | null): void => {
    void server?.onEnded(`The worker ended (${code}); the terminal of \`reprise dev\` says why.`);
    log.event("dev.ended", `worker exited (${code}); waiting for a file change`, { code });
  };
  const onKilled = (signal: NodeJS.Signals): void => {
    kills = systemClock.now() - startedAt < STABLE_MS ? kills + 1 : 1;
    const delayMs = kills === 1 ? 0 : backoffMs(RESTARTS, kills - 2, 0);
    const next = delayMs === 0 ? "restarting it" : `restarting it in ${formatMs(delayMs)}`;
    if (delayMs === 0) server?.release();
    else void server?.onEnded(`${signal} killed the worker repeatedly. \`reprise dev\` restarts it after a delay.`);
    log.event("dev.killed", `${paint("yellow", "worker was killed")} (${signal}); ${next}`, { signal, delayMs });
    cancelStart = systemTimers.set(delayMs, start);
  };
  const drain = async (): Promise<void> => {
    if (child?.connected === true) child.send(DRAIN);
    await exited;
  };
  const restart = async (changed: string): Promise<void> => {
    log.event("dev.changed", `${paint("cyan", "changed")} ${plain(changed)}`, { file: changed });
    server?.release();
    cancelStart?.();
    kills = 0;
    // dev.D1
    await drain();
    restarting = undefined;
    if (!stopping) start();
  };
  const watched = new WatchedFiles((changed) => {
    if (!stopping) restarting ??= restart(changed);
  });
  watched.set([path]);

  onInterrupt({
    announce: () => log.event("dev.stopping", STOPPING, {}),
    cleanUp: async () => {
      stopping = true;
      cancelStart?.();
      server?.release();
      await drain();
      await server?.close();
    },
    abandon: () => child?.kill("SIGKILL"),
  });
  log.event("dev.started", `watching ${plain(path)}, store ${plain(shownUrl(options.store))}; press Ctrl-C to stop`, {
    file: path,
    store: shownUrl(options.store),
  });
  start();
  return new Promise<number>(() => {});
}

function serverEnv(server: DevServer | undefined): NodeJS.ProcessEnv {
  if (server === undefined) return {};
  return { [PORT_VARIABLE]: String(server.port), ...(server.announces && { [ANNOUNCE_VARIABLE]: "1" }) };
}

/** Watches files through their folders, because editors replace a file instead of writing to it. */
class WatchedFiles {
  readonly #onChange: (path: string) => void;
  /** Fingerprint by path. */
  #files = new Map<string, string>();
  readonly #folders = new Map<string, FSWatcher>();
  #cancel: (() => void) | undefined;

  constructor(onChange: (path: string) => void) {
    this.#onChange = onChange;
  }

  set(paths: readonly string[]): void {
    this.#files = new Map(paths.map((path) => [path, this.#files.get(path) ?? fingerprintOf(path)]));
    const folders = new Set(paths.map((path) => dirname(path)));
    for (const [folder, watcher] of this.#folders)
      if (!folders.has(folder)) {
        watcher.close();
        this.#folders.delete(folder);
      }
    for (const folder of folders)
      if (!this.#folders.has(folder) && existsSync(folder))
        this.#folders.set(
          folder,
          watch(folder, () => this.#soon()),
        );
  }

  #soon(): void {
    this.#cancel?.();
    this.#cancel = systemTimers.set(SETTLE_MS, () => {
      let changed: string | undefined;
      for (const [path, before] of this.#files) {
        const now = fingerprintOf(path);
        if (now === before) continue;
        this.#files.set(path, now);
        changed = path;
      }
      if (changed !== undefined) this.#onChange(changed);
    });
  }
}

function fingerprintOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
}
