// SimBackend: the backend port on a simulated database. Every failure of the network and the server is
// a decision of the `SimWire` of a process; without one nothing fails and nothing takes time.
//
// sim-backend.B1. After `kill` no call settles. What the database was doing for the process is aborted, or completes without it.
// sim-backend.B2. A COMMIT may be applied and its response lost, lost before it is applied, or applied long after its sender has
//   given up (`late`). `lastBatch` fences the writer first: a late COMMIT then writes nothing.
// sim-backend.B3. History may go back. `failover`: another server takes over, without the last commits; every connection breaks, and
//   requests in flight are never applied. `restore`: the tables are replaced by older ones, connections stay.

import type { EpochMs } from "../../../src/base/index.ts";
import {
  ConnectionError,
  type QueryResult,
  type Backend,
  type BackendInfo,
  type Change,
  type CommitOutcome,
  type HistoryCheck,
  type Connection,
  type Query,
} from "../../../src/stores/remote/index.ts";
import { TransactionAborted, SimDatabase, type Isolation, type SimTransaction } from "./sim-database.ts";

export type SimCall = "connect" | "query" | "read" | "commit" | "rollback" | "small";
/** Where time may pass, or a connection break: on the request, between statements, around COMMIT, on the response. */
export type SimPlace = "before" | "statement" | "apply" | "applied" | "after";
export type SimFate = "ok" | "retry" | "lost-before" | "lost-after" | "late";

/** The network between one process and the database. */
export interface SimWire {
  /** Throws a `ConnectionError` when the connection breaks or the database aborts; may take any time. */
  pass(call: SimCall, place: SimPlace): Promise<void> | void;
  /** The fate of a COMMIT, decided when it is sent. */
  fate(): SimFate;
  /** sim-backend.B2. The delay of a late COMMIT. */
  late(): Promise<void>;
  /** sim-backend.B1. Whether the database completes a COMMIT whose sender was killed. */
  finishesAlone(): boolean;
  /** Whether a notification reaches the other processes. */
  delivers(): boolean;
}

export const PERFECT_WIRE: SimWire = {
  pass: () => {},
  fate: () => "ok",
  late: () => Promise.resolve(),
  finishesAlone: () => true,
  delivers: () => true,
};

/** The server: shared by all processes; survives them. */
export class SimServer {
  readonly database: SimDatabase;
  /** Increases with every failover. */
  identity = "1";
  readonly #now: () => EpochMs;
  readonly listeners = new Map<SimBackend, Set<(text: string) => void>>();
  readonly backends = new Set<SimBackend>();
  #pool = 0;

  constructor(isolation: Isolation, now: () => EpochMs) {
    this.database = new SimDatabase(isolation);
    this.#now = now;
  }

  now(): EpochMs {
    return this.#now();
  }

  newWriter(): string {
    this.#pool += 1;
    const writer = `w${this.#pool}`;
    this.database.apply(new Map([["writers", new Map([[writer, { writer, batch: 0, mark: 0 }]])]]));
    return writer;
  }

  /** sim-backend.B3 */
  failOver(lostCommits: number): void {
    this.database.rollBack(lostCommits, "failover");
    this.identity = String(Number(this.identity) + 1);
    for (const backend of this.backends) backend.breakLinks();
    for (const listeners of this.listeners.values()) for (const listener of listeners) listener("");
  }

  /** sim-backend.B3 */
  restore(lostCommits: number): void {
    this.database.rollBack(lostCommits, "restore");
  }

  /** The backend of a process. */
  backend(wire: SimWire = PERFECT_WIRE): SimBackend {
    return new SimBackend(this, wire);
  }
}

/**
 * Opens a simulated database with one process; `backend.server.backend()` connects another.
 *
 * @example
 * ```ts
 * const backend = openSimBackend({ now: () => 0 });
 * ```
 */
export function openSimBackend(options: { readonly isolation?: Isolation; readonly now: () => EpochMs }): SimBackend {
  return new SimServer(options.isolation ?? "rc", options.now).backend();
}

const never = new Promise<never>(() => {});

export class SimBackend implements Backend {
  readonly kind = "simulated";
  readonly server: SimServer;
  readonly wire: SimWire;
  readonly #pool = new Set<SimConnection>();
  #isDead = false;

  constructor(server: SimServer, wire: SimWire) {
    this.server = server;
    this.wire = wire;
    server.backends.add(this);
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  async connect(): Promise<SimConnection> {
    if (this.#isDead) return never;
    await this.wire.pass("connect", "before");
    const connection = new SimConnection(this, this.server.newWriter());
    this.#pool.add(connection);
    await this.wire.pass("connect", "after");
    if (this.#isDead) return never;
    if (connection.isBroken) throw new ConnectionError("lost");
    return connection;
  }

  /** sim-backend.B2 */
  lastBatch(connection: Connection, writer: string): Promise<number> {
    return simConnection(connection).alone(async (transaction) => {
      const table = this.server.database.table("writers");
      const asked = {
        kind: "lookup",
        table: "writers",
        columns: ["writer"],
        keys: [[writer]],
        lock: "update",
      } as const;
      const [row] = await transaction.ask(asked);
      if (row === undefined) return 0;
      await transaction.change({
        change: "update",
        table: table.name,
        columns: ["mark"],
        rows: [{ writer, mark: CLOSED }],
      });
      return row["batch"] as number;
    });
  }

  reserve(connection: Connection, counter: string, count: number, floor: number): Promise<number> {
    return simConnection(connection).alone(async (transaction) => {
      const asked = {
        kind: "lookup",
        table: "counters",
        columns: ["name"],
        keys: [[counter]],
        lock: "update",
      } as const;
      const [row] = await transaction.ask(asked);
      const last = (row?.["value"] as number | undefined) ?? 0;
      const first = Math.max(last, floor) + 1;
      const rows = [{ name: counter, value: first + count - 1 }];
      await transaction.change(
        row === undefined
          ? { change: "insert", table: "counters", rows }
          : { change: "update", table: "counters", columns: ["value"], rows },
      );
      return first;
    });
  }

  serverTime(connection: Connection): Promise<number> {
    return simConnection(connection).call("small", () => Promise.resolve(this.server.now()));
  }

  notify(connection: Connection, text: string): Promise<void> {
    return simConnection(connection).call("small", async () => {
      if (!this.wire.delivers()) return;
      for (const [backend, listeners] of this.server.listeners) {
        if (backend !== this && !backend.isDead) for (const listener of listeners) listener(text);
      }
    });
  }

  listen(listener: (text: string) => void): Promise<{ close(): Promise<void> }> {
    const { server } = this;
    const listeners = server.listeners.get(this) ?? new Set();
    server.listeners.set(this, listeners.add(listener));
    return Promise.resolve({
      close: async () => {
        listeners.delete(listener);
      },
    });
  }

  info(connection: Connection): Promise<BackendInfo> {
    const { isolation } = this.server.database;
    return simConnection(connection).call("small", () =>
      Promise.resolve({
        location: "memory",
        server: `simulated (${isolation})`,
        bytes: 0,
        durability: "full",
        schemaVersion: 1,
      }),
    );
  }

  async close(): Promise<void> {
    this.server.listeners.delete(this);
    this.server.backends.delete(this);
    for (const connection of this.#pool) connection.destroy();
  }

  /** sim-backend.B3 */
  breakLinks(): void {
    for (const connection of this.#pool) connection.break();
  }

  forget(connection: SimConnection): void {
    this.#pool.delete(connection);
  }

  /** sim-backend.B1 */
  kill(): void {
    this.#isDead = true;
    this.server.listeners.delete(this);
    this.server.backends.delete(this);
    for (const connection of this.#pool) connection.destroy();
  }
}

/** The mark of a fenced writer. */
const CLOSED = -1;

function simConnection(connection: Connection): SimConnection {
  return connection as SimConnection;
}

export class SimConnection implements Connection {
  readonly writer: string;
  /** The identity of this connection's server. */
  readonly server: string;
  readonly #backend: SimBackend;
  #isUsable = true;
  #isBroken = false;
  #transaction: SimTransaction | undefined;
  /** The transaction whose COMMIT has begun. */
  #committing: SimTransaction | undefined;

  constructor(backend: SimBackend, writer: string) {
    this.#backend = backend;
    this.writer = writer;
    this.server = backend.server.identity;
  }

  /** Its server has been replaced. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  query(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    return this.call("query", async () => {
      const transaction = (this.#transaction ??= this.#database.begin());
      const answers: QueryResult[] = [];
      for (const [index, query] of queries.entries()) {
        if (index > 0) await this.#backend.wire.pass("query", "statement");
        answers.push(await transaction.ask(query));
      }
      return answers;
    });
  }

  /** A transaction with one snapshot, until `rollback`. */
  snapshot(): Promise<void> {
    return this.call("query", async () => (this.#transaction ??= this.#database.begin()).keepMoment());
  }

  read(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    return this.call("read", () => Promise.resolve(queries.map((query) => this.#database.answer(query))));
  }

  commit(batch: number, mark: EpochMs, changes: readonly Change[], check?: HistoryCheck): Promise<CommitOutcome> {
    return this.call("commit", async () => {
      const transaction = this.#transaction ?? this.#database.begin();
      this.#transaction = undefined;
      const { wire } = this.#backend;
      const fate = wire.fate();
      if (fate === "late") {
        // sim-backend.B2. The sender gets no response.
        void wire
          .late()
          .then(() => this.#carryOut(transaction, batch, mark, changes, check))
          .catch(() => transaction.end());
        throw new ConnectionError("lost");
      }
      if (fate === "retry" || fate === "lost-before") {
        transaction.end();
        if (fate === "retry") return "retry";
        throw new ConnectionError("lost");
      }
      this.#committing = transaction;
      const outcome = await this.#carryOut(transaction, batch, mark, changes, check).finally(() => {
        this.#committing = undefined;
      });
      if (fate === "lost-after" && outcome === "committed") throw new ConnectionError("lost");
      return outcome;
    });
  }

  rollback(): Promise<void> {
    return this.call("rollback", async () => this.#giveUp());
  }

  async userHandle(): Promise<{ readonly db: SimUserHandle; close(): void }> {
    const transaction = (this.#transaction ??= this.#database.begin());
    let isOpen = true;
    const over = async <T>(work: () => Promise<T>): Promise<T> => {
      if (!isOpen) throw new Error("The handle can be used only while the function runs.");
      return await this.call("query", work);
    };
    return {
      db: {
        get: (key) => over(() => transaction.userGet(key)),
        put: (key, value) => over(() => transaction.userPut(key, value)),
      },
      close: () => void (isOpen = false),
    };
  }

  destroy(): void {
    this.#isUsable = false;
    this.#backend.forget(this);
    this.#giveUp();
    // sim-backend.B1
    if (this.#committing !== undefined && !this.#backend.wire.finishesAlone()) this.#committing.end();
  }

  async close(): Promise<void> {
    this.destroy();
  }

  /** sim-backend.B3. The database has ended its transactions. */
  break(): void {
    this.#isBroken = true;
    this.#isUsable = false;
    this.#backend.forget(this);
    this.#transaction = undefined;
  }

  /** A separate transaction, without a stamp. */
  alone<T>(work: (transaction: SimTransaction) => Promise<T>): Promise<T> {
    return this.call("small", async () => {
      const transaction = (this.#transaction = this.#database.begin());
      const result = await work(transaction);
      transaction.commit();
      this.#transaction = undefined;
      return result;
    });
  }

  async call<T>(call: SimCall, work: () => Promise<T>): Promise<T> {
    const backend = this.#backend;
    if (backend.isDead) return never;
    if (!this.#isUsable) throw new ConnectionError("lost");
    try {
      await backend.wire.pass(call, "before");
      if (backend.isDead) return await never;
      if (this.#isBroken) throw new ConnectionError("lost");
      const result = await work();
      await backend.wire.pass(call, "after");
      if (backend.isDead) return await never;
      if (this.#isBroken) throw new ConnectionError("lost");
      return result;
    } catch (error) {
      this.#giveUp();
      if (backend.isDead) return never;
      if (error instanceof TransactionAborted) throw new ConnectionError(error.why === "deadlock" ? "retry" : "lost");
      if (error instanceof ConnectionError && error.reason === "lost") this.destroy();
      throw error;
    }
  }

  get #database(): SimDatabase {
    return this.#backend.server.database;
  }

  #giveUp(): void {
    this.#transaction?.end();
    this.#transaction = undefined;
  }

  async #carryOut(
    transaction: SimTransaction,
    batch: number,
    mark: EpochMs,
    changes: readonly Change[],
    check: HistoryCheck | undefined,
  ): Promise<CommitOutcome> {
    const { wire } = this.#backend;
    try {
      for (const change of changes) {
        await wire.pass("commit", "statement");
        await transaction.change(change);
      }
      if (!(await transaction.stamp(this.writer, batch, mark, check))) {
        transaction.end();
        return check === undefined ? "conflict" : "rolled_back";
      }
      await wire.pass("commit", "apply");
      transaction.commit();
    } catch (error) {
      transaction.end();
      if (error instanceof TransactionAborted && error.why !== "ended")
        return error.why === "conflict" ? "conflict" : "retry";
      throw error;
    }
    await wire.pass("commit", "applied");
    return "committed";
  }
}

/** The handle of `ctx.tx`: the user's rows, by key. */
export interface SimUserHandle {
  /** Locks the row until the transaction ends. */
  get(key: string): Promise<string | undefined>;
  put(key: string, value: string): Promise<void>;
}
