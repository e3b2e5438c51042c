// Cluster: a primary and its standby, behind one address that follows the primary.
//
//   await using cluster = await startCluster("postgres", { replication: "async" });
//   await using database = await freshDatabase(cluster);
//   await cluster.pauseReplication();
//   … only the primary has what is committed now …
//   const { promotedAt } = await cluster.failOver();
//   await cluster.addStandby();
//
// cluster.C1. The two addresses of the members stay the same: a new standby replaces the dead server.
// cluster.C2. In mode "sync" every acknowledged commit survives `failOver`. After it, commits do not wait for a standby until there
//   is one again.

import { fastFolder, type ServerOptions, type TestServer } from "./server.ts";
import type { ServerKind, Settings } from "./kinds.ts";
import { startProxy, type Proxy } from "./proxy.ts";
import { REPLICATION, type ReplicationMode } from "./replication.ts";

export interface ClusterOptions {
  readonly replication: ReplicationMode;
  /** Settings of both servers, besides those for replication. */
  readonly settings?: Settings;
  /** The parent folder of the servers' folders; in memory by default. */
  readonly under?: string;
}

export interface FailOverOptions {
  /**
   * "kill": it is killed. "leave": it keeps running without its standby, with its existing connections: two
   * servers accept writes, and the old one is `former`. "stop": a planned switchover; it sends everything to its standby and ends.
   */
  readonly primary?: "kill" | "leave" | "stop";
}

/** By `performance.now()`. */
export interface FailOverTimes {
  /** The primary has ended (or, with "leave", is disconnected from its standby). */
  readonly diedAt: number;
  /** The other server accepts writes. */
  readonly promotedAt: number;
  /** The address leads to it. */
  readonly pointedAt: number;
}

export interface Cluster extends AsyncDisposable {
  readonly kind: ServerKind;
  readonly replication: ReplicationMode;
  /** The clients' address, of the default database. It stays the same and follows the primary. */
  readonly url: string;
  /** Both servers in one URL, in the order they were started. It stays the same, too. */
  readonly hostsUrl: string;
  readonly primary: TestServer;
  /** Undefined between `failOver` and `addStandby`. */
  readonly standby: TestServer | undefined;
  /** A primary that `failOver` left running. */
  readonly former: TestServer | undefined;
  /** The proxy at the address: its rules and `cutAll` break connections of clients. */
  readonly address: Proxy;
  urlOf(database: string): string;
  hostsUrlOf(database: string): string;
  /** Runs statements on the primary. */
  run(...statements: readonly string[]): Promise<void>;
  /** The standby receives nothing until `resumeReplication`. In mode "sync" commits wait. */
  pauseReplication(): Promise<void>;
  resumeReplication(): Promise<void>;
  /** Resolves when the standby has applied everything committed until now. */
  catchUp(): Promise<void>;
  /** Ends the primary, promotes the standby and points the address there. */
  failOver(options?: FailOverOptions): Promise<FailOverTimes>;
  /** Starts a new standby in place of the old primary, which ends now if it still runs. */
  addStandby(): Promise<void>;
}

export async function startCluster(kind: ServerKind, options: ClusterOptions): Promise<Cluster> {
  const replication = REPLICATION[kind];
  const shared = { settings: options.settings ?? {}, under: options.under ?? fastFolder() };
  await using started = new AsyncDisposableStack();
  const primary = started.use(await replication.startPrimary(shared));
  const standby = started.use(await replication.startStandby(primary, options.replication, shared));
  const address = started.use(await startProxy(primary.url));
  started.move();
  return new PairOfServers(kind, options.replication, shared, { primary, standby, address });
}

interface Members {
  readonly primary: TestServer;
  readonly standby: TestServer;
  readonly address: Proxy;
}

class PairOfServers implements Cluster {
  readonly kind: ServerKind;
  readonly replication: ReplicationMode;
  readonly address: Proxy;
  primary: TestServer;
  standby: TestServer | undefined;
  former: TestServer | undefined;

  readonly #options: ServerOptions;
  /** cluster.C1 */
  readonly #ports: readonly [number, number];
  /** The address of a new standby, and the old server to remove there. */
  #vacant: TestServer | undefined;

  constructor(kind: ServerKind, replication: ReplicationMode, options: ServerOptions, members: Members) {
    this.kind = kind;
    this.replication = replication;
    this.#options = options;
    this.primary = members.primary;
    this.standby = members.standby;
    this.address = members.address;
    this.#ports = [members.primary.port, members.standby.port];
  }

  get url(): string {
    return this.address.url;
  }

  get hostsUrl(): string {
    return this.#throughHosts(this.url);
  }

  urlOf(database: string): string {
    const url = new URL(this.address.url);
    url.pathname = `/${database}`;
    return url.href;
  }

  hostsUrlOf(database: string): string {
    return this.#throughHosts(this.urlOf(database));
  }

  async run(...statements: readonly string[]): Promise<void> {
    await this.primary.run(...statements);
  }

  async pauseReplication(): Promise<void> {
    await REPLICATION[this.kind].pause(this.#standby);
  }

  async resumeReplication(): Promise<void> {
    await REPLICATION[this.kind].resume(this.#standby, this.primary);
  }

  async catchUp(): Promise<void> {
    await REPLICATION[this.kind].catchUp(this.#standby, this.primary);
  }

  async failOver({ primary: fate = "kill" }: FailOverOptions = {}): Promise<FailOverTimes> {
    const replication = REPLICATION[this.kind];
    const [old, next] = [this.primary, this.#standby];
    if (fate === "kill") await old.kill();
    else if (fate === "stop") await replication.demote(old, next);
    else await replication.pause(next);
    const diedAt = performance.now();
    await replication.promote(next);
    const promotedAt = performance.now();
    this.address.pointTo(next.url);
    this.primary = next;
    this.standby = undefined;
    this.former = fate === "leave" ? old : undefined;
    this.#vacant = old;
    return { diedAt, promotedAt, pointedAt: performance.now() };
  }

  async addStandby(): Promise<void> {
    const vacant = this.#vacant;
    if (vacant === undefined) throw new Error("This cluster has a standby.");
    await vacant[Symbol.asyncDispose]();
    const options = { ...this.#options, port: vacant.port };
    try {
      this.standby = await REPLICATION[this.kind].startStandby(this.primary, this.replication, options);
    } catch (error) {
      if (this.primary.pid !== undefined) throw error;
      throw new Error(`The primary ended:\n${this.primary.log().slice(-12_000)}`, { cause: error });
    }
    this.#vacant = undefined;
    this.former = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.address[Symbol.asyncDispose]();
    const servers = [this.standby, this.#vacant, this.primary];
    await Promise.all(servers.map((server) => server?.[Symbol.asyncDispose]()));
  }

  get #standby(): TestServer {
    if (this.standby === undefined) throw new Error("This cluster has no standby; addStandby() starts one.");
    return this.standby;
  }

  #throughHosts(url: string): string {
    const { host } = new URL(url);
    return url.replace(host, this.#ports.map((port) => `127.0.0.1:${port}`).join());
  }
}
