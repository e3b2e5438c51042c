// Dev worker: the child process of `reprise dev`. A separate process, because Node cannot reload a module. It sends the
// loaded files to the parent, and drains when the parent sends DRAIN.

import { existsSync } from "node:fs";
import module from "node:module";
import { fileURLToPath } from "node:url";
import { storeOf } from "../stores/index.ts";
import { createEngine } from "../engine/index.ts";
import type { Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions, loadEngineOptions } from "./load-definitions.ts";
import { logLines } from "./log-lines.ts";
import { EXIT } from "./exit-codes.ts";
import { isPackageFile } from "./package-files.ts";
import { payloadOptions } from "./payload-module.ts";
import { RunTail } from "./run-tail.ts";
import { redactedStore } from "./redacted-store.ts";
import { onInterrupt } from "./signals.ts";

/** From the child to its parent. */
export interface LoadedFiles {
  readonly files: readonly string[];
}
/** From the parent to its child. */
export const DRAIN = "drain";

export async function devWorker(file: string, options: GlobalOptions): Promise<number> {
  // A terminal sends Ctrl-C to both processes; only the parent handles it.
  onInterrupt({ cleanUp: () => new Promise(() => {}), announce: () => {} });
  const files = collectUserFiles();
  const sendFiles = (): void => void process.send?.({ files: [...files] } satisfies LoadedFiles);
  let definitions;
  try {
    definitions = await loadDefinitions(file);
  } finally {
    sendFiles();
  }
  const log = logLines(options.json);
  let store: Store | undefined;
  const source = storeOf(options.store);
  const engine = await createEngine({
    store: { "~open": async (given) => (store = await source["~open"](given)) },
    definitions,
    // On a development machine no other worker claims work with a label.
    worker: { labels: "any" },
    logger: log,
    ...payloadOptions(),
    ...(await loadEngineOptions(file)),
  });
  const tail = store === undefined ? undefined : new RunTail(redactedStore(store), options.json);
  const names = definitions.map(({ name }) => name);
  log.event("dev.ready", `ready: ${names.join(", ")}`, { definitions: names });
  await drainRequested();
  await engine.drain({ grace: "30 s" });
  await tail?.settled();
  await engine.close();
  return EXIT.ok;
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
