// The worker inside `reprise dev`: a process of its own, because a module once loaded cannot be loaded anew. Its parent
// tells it when to drain, and learns which files it has loaded.

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
import { isOwnFile } from "./own-files.ts";
import { payloadOptions } from "./payload-module.ts";
import { RunTail } from "./run-tail.ts";
import { shownStore } from "./shown-store.ts";
import { onInterrupt } from "./signals.ts";

/** From the child to its parent. */
export interface LoadedFiles {
  readonly files: readonly string[];
}
/** From the parent to its child. */
export const DRAIN = "drain";

export async function devWorker(file: string, options: GlobalOptions): Promise<number> {
  // A terminal sends Ctrl-C to both; the parent decides.
  onInterrupt({ cleanUp: () => new Promise(() => {}), say: () => {} });
  const files = collectFiles();
  const tell = (): void => void process.send?.({ files: [...files] } satisfies LoadedFiles);
  let definitions;
  try {
    definitions = await loadDefinitions(file);
  } finally {
    tell();
  }
  const log = logLines(options.json);
  let store: Store | undefined;
  const source = storeOf(options.store);
  const engine = await createEngine({
    store: { "~open": async (given) => (store = await source["~open"](given)) },
    definitions,
    // One person, one machine: nobody else is there to take what has a label.
    worker: { labels: "any" },
    logger: log,
    ...payloadOptions(),
    ...(await loadEngineOptions(file)),
  });
  const tail = store === undefined ? undefined : new RunTail(shownStore(store), options.json);
  const names = definitions.map(({ name }) => name);
  log.event("dev.ready", `ready: ${names.join(", ")}`, { definitions: names });
  await drainTold();
  await engine.drain({ grace: "30 s" });
  await tail?.settled();
  await engine.close();
  return EXIT.ok;
}

/** Told by the parent, or the parent is gone. */
function drainTold(): Promise<void> {
  return new Promise((resolve) => {
    process.on("message", (message) => message === DRAIN && resolve());
    process.on("disconnect", resolve);
  });
}

/** Every file of the user's that is loaded from now on, also one that is asked for and not there. */
function collectFiles(): ReadonlySet<string> {
  const files = new Set<string>();
  const add = (url: string): void => {
    if (!url.startsWith("file:") || url.includes("/node_modules/")) return;
    const path = fileURLToPath(url);
    if (!isOwnFile(path)) files.add(path);
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
