// createFederation: opens a site: its home, its key, its store, and the exchange with its peers.
//
// federation.F1. Options are checked before anything is opened or written.
// federation.F2. The store is opened as a client's: no run is claimed, and no run notices.
// federation.F3. In the background the log is updated when the store changes, each peer is asked with a request that waits for news, and
//   new records are pushed at once. Wherever that cannot be noticed, a poll finds it.

import { resolve } from "node:path";
import {
  checkCodec,
  checkOptionNames,
  requireRealTime,
  systemClock,
  systemRandom,
  systemTimers,
} from "../base/index.ts";
import { checkLogger, checkSignal, openUnlessAborted } from "../engine/index.ts";
import type { AnyTask, Definition, Store } from "../kernel/index.ts";
import { Poller } from "../process/index.ts";
import { storeOf } from "../stores/index.ts";
import type { Federation, FederationOptions } from "./api.ts";
import { checkSettings, SETTING_NAMES } from "./check-settings.ts";
import { ExchangeLoop, type Exchange } from "./exchange-loop.ts";
import { openHome } from "./home/home.ts";
import { createHomeFolder, getKeyIn, KEY_VARIABLE, parseKey } from "./key-file.ts";
import type { FederationSettings } from "./settings.ts";
import { executeWork } from "./site-work.ts";
import { Site, type SiteParts } from "./site.ts";
import { SyncState } from "./sync/sync-state.ts";

const DEFAULT_HOME = ".reprise";
const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };
const NAMES = [...SETTING_NAMES, "codec", "definitions", "home", "key", "logger", "signal", "store", "sync"];

/**
 * Opens a site that shares the history of its runs with other sites: its log, the logs of its peers, and the exchange between them.
 *
 * @example
 * ```ts
 * import { createFederation } from "reprise/federation";
 * await using site = await createFederation({ store: "sqlite:shop.db", home: ".reprise", name: "shop" });
 * await site.setOn(true);
 * console.log(site.vkey, (await site.status()).waiting);
 * ```
 */
export async function createFederation<const Peer extends string = never>(
  options: FederationOptions<Peer>,
): Promise<Federation<Peer>> {
  requireRealTime("createFederation");
  checkOptionNames(options, NAMES, "createFederation");
  const { store, codec, home = DEFAULT_HOME, key, sync, logger, signal, definitions, ...settings } = options;
  const source = store === undefined ? undefined : storeOf(store);
  const checkedCodec = checkCodec(codec);
  const parts = { where: "createFederation", settings, home, sync, logger, ...(definitions && { definitions }) };
  checkSettings(settings, parts.where);
  const open = async (): Promise<Site> => {
    const openStore = source && (() => source["~open"]({ ...PORTS, durability: "full", codec: checkedCodec }));
    const opened = await openStore?.();
    try {
      const given = opened && openStore && { store: opened, openStore };
      const site = await openFederation({ ...parts, ...given, ...(key !== undefined && { key }) });
      if (opened !== undefined) site.onClosed(() => opened.close());
      return site;
    } catch (error) {
      await opened?.close();
      throw error;
    }
  };
  return (await openUnlessAborted(checkSignal(signal, "createFederation"), open)) as Federation<Peer>;
}

export interface OpenFederation {
  /** Begins every message about settings. */
  readonly where: string;
  readonly settings: FederationSettings;
  readonly home: string;
  readonly store?: Store;
  /** Opens it once more, for a worker that offers tasks. */
  readonly openStore?: () => Promise<Store>;
  /** The text of a key file. */
  readonly key?: string;
  readonly sync?: "continuous" | "manual" | undefined;
  readonly logger?: FederationOptions["logger"];
  readonly definitions?: readonly (Definition | AnyTask)[];
}

/** createFederation on a store that is open, and stays so. */
export async function openFederation(options: OpenFederation): Promise<Site> {
  const settings = checkSettings(options.settings, options.where);
  const logger = checkLogger(options.logger);
  const dir = resolve(options.home);
  createHomeFolder(dir);
  const own = options.key === undefined ? getKeyIn(dir, settings.name) : parseKey(options.key, `${options.where}: key`);
  const home = openHome(dir, settings.shards === undefined ? {} : { shards: settings.shards });
  const state = SyncState.open(dir);
  const { definitions = [] } = options;
  const isKeyInFile = options.key === undefined && !process.env[KEY_VARIABLE];
  const { store, openStore } = options;
  const opened = { dir, home, state, settings, own, isKeyInFile, store, openStore, definitions, logger };
  const parts: SiteParts = { ...opened, ...PORTS };
  const site = new Site(parts);
  try {
    for (const { vkey, name, grants } of settings.peers) home.admit(vkey, { peer: name, grants });
    if (options.sync !== "manual") {
      const work = executeWork(parts);
      if (work !== undefined) site.onClose(() => work.stop());
      startLoop(site, parts);
    }
    return site;
  } catch (error) {
    await site.close();
    throw error;
  }
}

/** How long a pull waits at a peer for news. */
const WAIT_MS = 30_000;
/** The pause between two pulls: a carrier that cannot wait answers at once. */
const PAUSE_MS = 50;
/** How often the log is updated even though nothing was noticed; and how often a push is tried without news. */
const UPDATE_MS = 30_000;
/** peer-exchange.E3 */
const PULLS_PER_FILL = 10;

/** federation.F3 */
function startLoop(site: Site, { settings, store, clock, timers, logger }: SiteParts): void {
  const exchanges: Exchange[] = [];
  if (store !== undefined)
    exchanges.push({ name: "log", everyMs: UPDATE_MS, run: async (signal) => void (await site.record(signal)) });
  for (const { name, url, push } of settings.peers) {
    if (url === undefined) continue;
    let pulls = 0;
    exchanges.push({
      name: `pull ${name}`,
      everyMs: PAUSE_MS,
      run: (signal) => site.pullInBackground(name, { signal, waitMs: WAIT_MS, fill: pulls++ % PULLS_PER_FILL === 0 }),
    });
    if (push.length > 0)
      exchanges.push({
        name: `push ${name}`,
        everyMs: UPDATE_MS,
        run: (signal) => site.pushInBackground(name, signal),
      });
  }
  const loop = new ExchangeLoop(exchanges, { clock, timers, logger });
  site.onChange(() => loop.wake((name) => name.startsWith("push ")));
  const poller =
    store &&
    new Poller({
      store,
      timers,
      polls: true,
      onDue: () => undefined,
      onChanged: () => (loop.wake((name) => name === "log"), 0),
    });
  site.onClose(async () => {
    poller?.stop();
    await loop.close();
  });
  poller?.start();
  loop.start();
}
