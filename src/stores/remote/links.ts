// Links: a few connections, each with its own kind of work, so that nothing urgent waits behind something long.
//
// K1. A link is used by one call at a time; who comes while all are in use waits in line.
// K2. `beat` has a link of its own: a heartbeat never waits behind a batch.
// K3. A link that failed is not used again: the next one who needs one makes a new connection.
// K4. All links lead to one server. When a new one leads to another, or history went back, the others are dropped.

import { RepriseError } from "../../base/index.ts";
import { LinkError, type Backend, type Link } from "./backend.ts";

/**
 * What links are for. `claim`: polls, and what is done now and then. `small`: numbers, and what became of a commit. `user`: `ctx.tx`, where a transaction lasts as long as a
 * function of the user's.
 */
export type Lane = "write" | "claim" | "read" | "beat" | "small" | "user";

export type LaneSizes = Readonly<Record<Lane, number>>;

/** A link and the number of its last batch (L3), with what is known of it (history.ts). */
export interface WriteLink {
  readonly link: Link;
  batch: number;
  /** The last batch that is known to be in. */
  acknowledged: number;
  /** Y2. By writer: batches of others that a commit of this link has found. */
  readonly checked: Map<string, number>;
}

/** What decides whether a connection may be used. */
export interface LinkCheck {
  /** Of a new one, before anybody uses it. */
  connected(link: Link): Promise<void>;
  isStale(on: WriteLink): boolean;
  /** Y6. Set while nothing may be read or written. */
  settled(): Promise<void> | undefined;
}

interface LaneState {
  readonly idle: WriteLink[];
  /** Links there are, in use or not, and those that are being made. */
  count: number;
  readonly line: (() => void)[];
}

export class Links {
  readonly #backend: Backend;
  readonly #sizes: LaneSizes;
  readonly #check: LinkCheck;
  readonly #inUse = new Set<WriteLink>();
  readonly #lanes: Record<Lane, LaneState> = {
    write: lane(),
    claim: lane(),
    read: lane(),
    beat: lane(),
    small: lane(),
    user: lane(),
  };
  #closed = false;

  constructor(backend: Backend, sizes: LaneSizes, check: LinkCheck) {
    this.#backend = backend;
    this.#sizes = sizes;
    this.#check = check;
  }

  /** The first one, before anybody needs it: what `connect` refuses is refused here. */
  async open(): Promise<void> {
    const made = await this.#connect();
    this.#lanes.write.count += 1;
    this.#lanes.write.idle.push(made);
  }

  async #connect(): Promise<WriteLink> {
    const link = await this.#backend.connect();
    try {
      await this.#check.connected(link);
    } catch (error) {
      link.destroy();
      throw error;
    }
    return { link, batch: 0, acknowledged: 0, checked: new Map() };
  }

  /** K4. All but one are of no more use, whatever they are doing. */
  dropAll(kept: Link | undefined): void {
    for (const { idle } of Object.values(this.#lanes)) for (const { link } of idle) if (link !== kept) link.destroy();
    for (const { link } of this.#inUse) if (link !== kept) link.destroy();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  async use<T>(name: Lane, work: (link: WriteLink) => Promise<T>, isUrgent = name === "small"): Promise<T> {
    const settled = isUrgent ? undefined : this.#check.settled();
    if (settled !== undefined) await settled;
    const taken = await this.#take(name);
    this.#inUse.add(taken);
    try {
      return await work(taken);
    } catch (error) {
      if (error instanceof LinkError && error.reason === "lost") taken.link.destroy();
      throw error;
    } finally {
      this.#inUse.delete(taken);
      this.#give(name, taken);
    }
  }

  async #take(name: Lane): Promise<WriteLink> {
    const state = this.#lanes[name];
    for (;;) {
      if (this.#closed) throw closed();
      const idle = state.idle.pop();
      if (idle !== undefined) {
        if (idle.link.isUsable && !this.#check.isStale(idle)) return idle;
        idle.link.destroy();
        state.count -= 1;
        continue;
      }
      if (state.count < this.#sizes[name]) break;
      await new Promise<void>((resolve) => state.line.push(resolve));
    }
    state.count += 1;
    try {
      const made = await this.#connect();
      if (!this.#closed) return made;
      await made.link.close().catch(() => undefined);
      throw closed();
    } catch (error) {
      state.count -= 1;
      state.line.shift()?.();
      throw error;
    }
  }

  #give(name: Lane, taken: WriteLink): void {
    const state = this.#lanes[name];
    if (this.#closed) void taken.link.close().catch(() => undefined);
    else if (taken.link.isUsable) state.idle.push(taken);
    else state.count -= 1;
    state.line.shift()?.();
  }

  /** Links of every other kind that nobody uses; answers their writers, which are of no more use. */
  async closeOthers(kept: Lane): Promise<readonly string[]> {
    const writers: string[] = [];
    for (const [name, state] of Object.entries(this.#lanes))
      if (name !== kept)
        for (const { link } of state.idle.splice(0)) {
          state.count -= 1;
          if (link.isUsable) writers.push(link.writer);
          await link.close().catch(() => undefined);
        }
    return writers;
  }

  /** Links in use are closed when they come back. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const state of Object.values(this.#lanes)) {
      for (const resolve of state.line.splice(0)) resolve();
      for (const { link } of state.idle.splice(0)) await link.close().catch(() => undefined);
    }
  }
}

function lane(): LaneState {
  return { idle: [], count: 0, line: [] };
}

function closed(): RepriseError {
  return new RepriseError("USAGE", "The store is closed.");
}
