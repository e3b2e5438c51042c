// Open federation: the site of this command line: its home folder, federation.json and, where there is one, its store.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemClock } from "../base/index.ts";
import { openFederation, readSettings, settingsFile, type Site } from "../federation/index.ts";
import { isServer, sqlitePathOf } from "../stores/index.ts";
import type { AnyTask, Definition, Store } from "../kernel/index.ts";
import { DEFAULT_STORE, type GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { openExisting, withStore } from "./open-store.ts";
import { createProgress, type Progress } from "./progress.ts";
import { onInterrupt } from "./signals.ts";

export interface FederationUse {
  /** `optional`: a site without runs, such as an auditor, has no store. Default: required. */
  readonly store?: "required" | "optional";
  /** Exchange records with peers in the background. */
  readonly sync?: "continuous" | "manual";
  /** Tasks that this site offers or executes. */
  readonly definitions?: readonly (Definition | AnyTask)[];
}

/** Opens the site, does the work and closes it; also after Ctrl-C. */
export async function withFederation<T>(
  options: GlobalOptions,
  use: FederationUse,
  work: (site: Site, store: Store | undefined) => Promise<T>,
): Promise<T> {
  const open = async (store?: Store): Promise<T> => {
    const site = await openFederation({
      where: settingsFile(homeOf(options)),
      settings: readSettings(homeOf(options)),
      home: homeOf(options),
      sync: use.sync ?? "manual",
      ...(use.definitions && { definitions: use.definitions }),
      ...(store !== undefined && { store, openStore: () => openExisting(options.store, false) }),
    });
    onInterrupt({ cleanUp: () => site.close(), announce: () => {} });
    try {
      return await work(site, store);
    } finally {
      await site.close();
    }
  };
  return use.store === "optional" && !hasStore(options) ? open() : withStore(options.store, open);
}

/** False: no store is named, and there is none of the default name. */
export function hasStore({ store }: GlobalOptions): boolean {
  return store !== DEFAULT_STORE || isServer(store) || existsSync(resolve(sqlitePathOf(store)));
}

/** Whether this folder belongs to a site: it has settings of federation, or a log. */
export function isFederated(options: GlobalOptions): boolean {
  const home = homeOf(options);
  return existsSync(settingsFile(home)) || existsSync(join(home, HOME_FILE));
}

const HOME_FILE = "federation.db";

export function startProgress(verb: string, unit: string): Progress {
  return createProgress(verb, unit, () => systemClock.monotonic());
}
