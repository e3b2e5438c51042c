// A site of a federation: a store with real runs, a home, a key, and what it remembers.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, typed, workflow, type AnyTask, type Definition, type PayloadCodec } from "reprise";
import { onTestFinished } from "vitest";
import { sha256Hex, systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { openDirectory } from "../../../src/carriers/directory.ts";
import type { Carrier } from "../../../src/carriers/carrier.ts";
import { openHome, type Home, type HomeOptions } from "../../../src/federation/home/home.ts";
import { Sequencer } from "../../../src/federation/sync/sequencer.ts";
import { meetOwn, type MetOwn } from "../../../src/federation/sync/meet-own.ts";
import type { PublicationRule } from "../../../src/federation/sync/publish.ts";
import { pullFrom, type PulledLog, type PullOptions } from "../../../src/federation/sync/pull.ts";
import { pushTo, type PushedLog, type PushOptions } from "../../../src/federation/sync/push.ts";
import { SyncState } from "../../../src/federation/sync/sync-state.ts";
import { takeOwn, type TakenOwn } from "../../../src/federation/sync/take-own.ts";
import type { Store } from "../../../src/kernel/index.ts";
import { signingKeyOf, type SigningKey } from "../../../src/receipts/index.ts";
import { sqlite } from "../../../src/stores/index.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

export const double = workflow("math.double", async (ctx, n: number) => ctx.run("double", { n }, () => n * 2));
export const secret = workflow("vault.open", async (ctx, pin: string) =>
  ctx.run("open", { pin }, () => `opened ${pin}`),
);
export const sum = workflow("math.sum", { input: typed<readonly number[]>() }, async (ctx, list) => {
  let total = 0;
  for (const n of list) total += await ctx.child(double, n);
  return total;
});

/** A folder that is gone after the test. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "reprise-sync-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Every file in a folder, by its path. */
export function filesIn(folder: string): ReadonlyMap<string, string> {
  return new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path.slice(folder.length), readFileSync(path, "latin1")]),
  );
}

/** Every byte that a carrier has. */
export function everythingIn(folder: string): string {
  return [...filesIn(folder)].map(([path, text]) => `${path}\n${text}`).join("\n");
}

/** A carrier in a folder. */
export async function folderCarrier(folder = freshFolder()): Promise<Carrier & { readonly folder: string }> {
  const carrier = await openDirectory(folder, { clock: systemClock, timers: systemTimers, random: systemRandom });
  onTestFinished(() => carrier.close());
  return Object.assign(carrier, { folder });
}

export interface SiteOptions extends HomeOptions {
  readonly rules?: readonly PublicationRule[];
  readonly definitions?: readonly (Definition | AnyTask)[];
  readonly codec?: PayloadCodec;
  readonly archives?: boolean;
}

export class Site {
  readonly name: string;
  readonly folder: string;
  readonly home: Home;
  readonly state: SyncState;
  key: SigningKey;
  rules: readonly PublicationRule[];
  readonly #options: SiteOptions;
  #store: Store | undefined;

  constructor(name: string, options: SiteOptions = {}, folder = freshFolder()) {
    this.name = name;
    this.folder = folder;
    this.#options = options;
    this.key = keyOf(name);
    this.rules = options.rules ?? [];
    mkdirSync(folder, { recursive: true });
    this.home = openHome(join(folder, "home"), options);
    this.state = SyncState.open(join(folder, "home"));
    onTestFinished(() => this.close());
  }

  get file(): string {
    return join(this.folder, "store.db");
  }

  get origin(): string {
    return this.key.origin;
  }

  async store(): Promise<Store> {
    const codec = this.#options.codec;
    this.#store ??= await sqlite(this.file)["~open"]({
      clock: systemClock,
      timers: systemTimers,
      random: systemRandom,
      durability: "relaxed",
      ...(codec && { codec }),
    });
    if (!(await this.#store.isFederated())) await this.#store.setFederated(true);
    return this.#store;
  }

  /** Runs to their end, with an engine of its own. */
  async run(what: Definition, inputs: Readonly<Record<string, unknown>>, tags: readonly string[] = []): Promise<void> {
    await this.store();
    const { definitions = [double, secret, sum], codec } = this.#options;
    await using engine = await createEngine({
      store: `sqlite:${this.file}`,
      definitions: definitions as readonly Definition[],
      logger: SILENT,
      ...(codec && { codec }),
    });
    for (const [id, input] of Object.entries(inputs))
      await (await engine.start(what, input as undefined, { id, tags })).result().catch(() => undefined);
  }

  /** Ended runs into the log, and the log into the home. */
  async take(): Promise<TakenOwn> {
    const store = await this.store();
    await new Sequencer({ store, key: this.key, timers: systemTimers, clock: systemClock, keeps: () => true }).run();
    const { archives = false } = this.#options;
    return takeOwn(store, this.home, this.key, { rules: this.rules, state: this.state, archives });
  }

  async meet(carrier?: Carrier): Promise<MetOwn> {
    return meetOwn(await this.store(), this.home, this.key, carrier);
  }

  push(carrier: Carrier, reader: string, more: Partial<PushOptions> = {}): Promise<readonly PushedLog[]> {
    const { rules, state, origin } = this;
    return pushTo(this.home, carrier, { reader, rules, state, own: origin, ...more });
  }

  pull(carrier: Carrier, more: PullOptions = {}): Promise<readonly PulledLog[]> {
    return pullFrom(this.home, carrier, { state: this.state, ...more });
  }

  admit(...sites: readonly Site[]): this {
    for (const { key, name } of sites) this.home.admit(key.vkey, { peer: name });
    return this;
  }

  /** A round with a carrier, as a site does it. */
  async sync(carrier: Carrier, reader: string): Promise<readonly PushedLog[]> {
    await this.meet(carrier);
    await this.take();
    return this.push(carrier, reader);
  }

  async closeStore(): Promise<void> {
    await this.#store?.close();
    this.#store = undefined;
  }

  async close(): Promise<void> {
    await this.closeStore();
    this.home.close();
    this.state.close();
  }
}

export function keyOf(name: string): SigningKey {
  return signingKeyOf(Buffer.from(sha256Hex(`key of ${name}`), "hex"), name);
}
