// ConnectionPool: a few connections, grouped by use, so that nothing urgent waits behind a long transaction.
//
// connection-pool.K1. A connection is used by one call at a time; callers wait in order while all of their use are taken.
// connection-pool.K2. `heartbeat` has its own connection: a heartbeat never waits behind a batch.
// connection-pool.K3. A failed connection is not used again: the next caller opens a new one.
// connection-pool.K4. All connections lead to one server. When a new one leads to another server, or history went back, the pool
//   destroys the others.

import { RepriseError } from "../../base/index.ts";
import { ConnectionError, type Backend, type Connection } from "./backend.ts";

/**
 * What a connection is used for. `claim`: polls and maintenance. `control`: number blocks, notifications and unresolved commits.
 * `user`: `ctx.tx`, where a transaction lasts as long as the user's function.
 */
export type ConnectionUse = "write" | "claim" | "read" | "heartbeat" | "control" | "user";

export type PoolSizes = Readonly<Record<ConnectionUse, number>>;

/** A connection, the number of its last batch (remote.L3), and what history.ts knows of it. */
export interface PooledConnection {
  readonly connection: Connection;
  batch: number;
  /** The last batch known to be committed. */
  acknowledged: number;
  /** remote.Y2. By writer: batches of other connections that a commit of this one has verified. */
  readonly checked: Map<string, number>;
}

/** Decides whether a connection may be used. */
export interface ConnectionCheck {
  /** Called for a new connection, before its first use. */
  connected(connection: Connection): Promise<void>;
  isStale(on: PooledConnection): boolean;
  /** remote.Y6. Defined while nothing may be read or written. */
  settled(): Promise<void> | undefined;
}

interface UsePool {
  readonly idle: PooledConnection[];
  /** Open connections, in use or not, and those being opened. */
  count: number;
  readonly waiters: (() => void)[];
}

export class ConnectionPool {
  readonly #backend: Backend;
  readonly #sizes: PoolSizes;
  readonly #check: ConnectionCheck;
  readonly #inUse = new Set<PooledConnection>();
  readonly #pools: Record<ConnectionUse, UsePool> = {
    write: usePool(),
    claim: usePool(),
    read: usePool(),
    heartbeat: usePool(),
    control: usePool(),
    user: usePool(),
  };
  #closed = false;

  constructor(backend: Backend, sizes: PoolSizes, check: ConnectionCheck) {
    this.#backend = backend;
    this.#sizes = sizes;
    this.#check = check;
  }

  /** Opens the first connection, so that an error of `connect` is thrown when the store is opened. */
  async open(use: ConnectionUse): Promise<void> {
    const opened = await this.#connect();
    this.#pools[use].count += 1;
    this.#pools[use].idle.push(opened);
  }

  async #connect(): Promise<PooledConnection> {
    const connection = await this.#backend.connect();
    try {
      await this.#check.connected(connection);
    } catch (error) {
      connection.destroy();
      throw error;
    }
    return { connection, batch: 0, acknowledged: 0, checked: new Map() };
  }

  /** connection-pool.K4. Destroys all connections but one, whatever they are doing. */
  dropAll(kept: Connection | undefined): void {
    for (const { idle } of Object.values(this.#pools))
      for (const { connection } of idle) if (connection !== kept) connection.destroy();
    for (const { connection } of this.#inUse) if (connection !== kept) connection.destroy();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  async use<T>(
    name: ConnectionUse,
    work: (connection: PooledConnection) => Promise<T>,
    isUrgent = name === "control",
  ): Promise<T> {
    const settled = isUrgent ? undefined : this.#check.settled();
    if (settled !== undefined) await settled;
    const taken = await this.#take(name);
    this.#inUse.add(taken);
    try {
      return await work(taken);
    } catch (error) {
      if (error instanceof ConnectionError && error.reason === "lost") taken.connection.destroy();
      throw error;
    } finally {
      this.#inUse.delete(taken);
      this.#give(name, taken);
    }
  }

  async #take(name: ConnectionUse): Promise<PooledConnection> {
    const state = this.#pools[name];
    for (;;) {
      if (this.#closed) throw closed();
      const idle = state.idle.pop();
      if (idle !== undefined) {
        if (idle.connection.isUsable && !this.#check.isStale(idle)) return idle;
        idle.connection.destroy();
        state.count -= 1;
        continue;
      }
      if (state.count < this.#sizes[name]) break;
      await new Promise<void>((resolve) => state.waiters.push(resolve));
    }
    state.count += 1;
    try {
      const opened = await this.#connect();
      if (!this.#closed) return opened;
      await opened.connection.close().catch(() => undefined);
      throw closed();
    } catch (error) {
      state.count -= 1;
      state.waiters.shift()?.();
      throw error;
    }
  }

  #give(name: ConnectionUse, taken: PooledConnection): void {
    const state = this.#pools[name];
    if (this.#closed) void taken.connection.close().catch(() => undefined);
    else if (taken.connection.isUsable) state.idle.push(taken);
    else state.count -= 1;
    state.waiters.shift()?.();
  }

  /** Closes the idle connections of every other use; returns their writers, whose rows can be deleted. */
  async closeOthers(kept: ConnectionUse): Promise<readonly string[]> {
    const writers: string[] = [];
    for (const [name, state] of Object.entries(this.#pools))
      if (name !== kept)
        for (const { connection } of state.idle.splice(0)) {
          state.count -= 1;
          if (connection.isUsable) writers.push(connection.writer);
          await connection.close().catch(() => undefined);
        }
    return writers;
  }

  /** Connections in use are closed when they are returned. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const state of Object.values(this.#pools)) {
      for (const resolve of state.waiters.splice(0)) resolve();
      for (const { connection } of state.idle.splice(0)) await connection.close().catch(() => undefined);
    }
  }
}

function usePool(): UsePool {
  return { idle: [], count: 0, waiters: [] };
}

function closed(): RepriseError {
  return new RepriseError("USAGE", "The store is closed. Open it again before you use it.");
}
