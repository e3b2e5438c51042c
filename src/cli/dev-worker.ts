// Dev worker: the child process of `reprise dev`. A separate process, because Node cannot reload a module. It sends the
// loaded files to the parent, and drains when the parent sends DRAIN.

import { existsSync } from "node:fs";
import module from "node:module";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { storeOf } from "../stores/index.ts";
import { createEngine, type Client } from "../engine/index.ts";
import type { Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions, loadEngineOptions } from "./load-definitions.ts";
import { logLines, type LogLines } from "./log-lines.ts";
import { LogRing } from "../server/index.ts";
import {
  announceDashboard,
  ANNOUNCE_VARIABLE,
  CONNECTION,
  devAccess,
  DRAIN,
  PORT_VARIABLE,
  type DevMessage,
} from "./dev-protocol.ts";
import { EXIT } from "./exit-codes.ts";
import { isPackageFile } from "./package-files.ts";
import { payloadOptions } from "./payload-module.ts";
import { RunTail } from "./run-tail.ts";
import { redactedStore } from "./redacted-store.ts";
import { onInterrupt } from "./signals.ts";

export async function devWorker(file: string, options: GlobalOptions): Promise<number> {
  // A terminal sends Ctrl-C to both processes; only the parent handles it.
  onInterrupt({ cleanUp: () => new Promise(() => {}), announce: () => {} });
  const files = collectUserFiles();
  const send = (message: DevMessage): void => void process.send?.(message);
  let definitions;
  try {
    definitions = await loadDefinitions(file);
  } catch (error) {
    send({ failed: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    send({ files: [...files] });
  }
  const log = logLines(options.json);
  const logs = new LogRing();
  let store: Store | undefined;
  const source = storeOf(options.store);
  const engine = await createEngine({
    store: { "~open": async (given) => (store = await source["~open"](given)) },
    definitions,
    // On a development machine no other worker claims work with a label.
    worker: { labels: "any" },
    logger: logs.logger(log),
    ...payloadOptions(),
    ...(await loadEngineOptions(file)),
  });
  const tail = store === undefined ? undefined : new RunTail(redactedStore(store), options.json);
  const names = definitions.map(({ name }) => name);
  const server = await serveConnections(engine, logs, log, options);
  log.event("dev.ready", `ready: ${names.join(", ")}`, { definitions: names });
  send({ ready: true });
  await drainRequested();
  await server?.close();
  await engine.drain({ grace: "30 s" });
  await tail?.settled();
  await engine.close();
  return EXIT.ok;
}

/** Answers the connections that the parent passes. Undefined: it passes none. */
async function serveConnections(
  engine: Client,
  logs: LogRing,
  log: LogLines,
  options: GlobalOptions,
): Promise<{ close(): Promise<void> } | undefined> {
  const port = Number(process.env[PORT_VARIABLE] ?? Number.NaN);
  if (Number.isNaN(port)) return undefined;
  const { createServer } = await import("../server/index.ts");
  const server = createServer(engine, { ...devAccess(options), logger: logs.logger(log), logs });
  const sockets = (accept: (socket: Socket) => void): void =>
    void process.on("message", (message, handle) => {
      if (message === CONNECTION && handle instanceof Socket) accept(handle);
    });
  const listener = await server.listen({ port, sockets });
  if (process.env[ANNOUNCE_VARIABLE] === "1") announceDashboard(log, listener.url, server.signInAddress());
  return listener;
}

/** Resolves when the parent sends DRAIN or exits. */
function drainRequested(): Promise<void> {
  return new Promise((resolve) => {
    process.on("message", (message) => message === DRAIN && resolve());
    process.on("disconnect", resolve);
  });
}

/** The user's files that are imported from now on, including missing ones. */
function collectUserFiles(): ReadonlySet<string> {
  const files = new Set<string>();
  const add = (url: string): void => {
    if (!url.startsWith("file:") || url.includes("/node_modules/")) return;
    const path = fileURLToPath(url);
    if (!isPackageFile(path)) files.add(path);
  };
  module.registerHooks({
    resolve(specifier, context, next) {
      if (/^\.{1,2}\//.test(specifier) && context.parentURL !== undefined) {
        const wanted = new URL(specifier, context.parentURL);
        if (!existsSync(wanted)) add(wanted.href);
      }
      return next(specifier, context);
    },
    load(url, context, next) {
      add(url);
      return next(url, context);
    },
  });
  return files;
}
