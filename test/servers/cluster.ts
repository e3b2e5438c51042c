// A primary and its standby, behind one address: what clients use. The address follows the primary.
//
//   await using cluster = await startCluster("postgres", { replication: "async" });
//   await using database = await freshDatabase(cluster);
//   await cluster.pauseReplication();
//   … what is committed now is known to the primary alone …
//   const { promotedAt } = await cluster.failOver();
//   await cluster.addStandby();
//
// C1. The two addresses of the members stay the same: a new standby takes the place of the dead server.
// C2. In mode "sync" every commit that was acknowledged survives `failOver`. After it commits wait for nobody, until there
//     is a standby again.

import { fastFolder, type ServerOptions, type TestServer } from "./server.ts";
import type { ServerKind, Settings } from "./kinds.ts";
import { startProxy, type Proxy } from "./proxy.ts";
import { REPLICATION, type ReplicationMode } from "./replication.ts";

export interface ClusterOptions {
  readonly replication: ReplicationMode;
  /** Of both servers, beyond what replication needs. */
  readonly settings?: Settings;
  /** The folder in which the servers' folders are made; in memory by default. */
  readonly under?: string;
}

export interface FailOverOptions {
  /**
   * "kill": it dies at once. "leave": it lives, cut off from its standby, and connections there are stay with it: two
   * servers take writes, and the old one is `former`. "stop": it sends its standby all it has and ends, a planned switchover.
   */
  readonly primary?: "kill" | "leave" | "stop";
}

/** By `performance.now()`. */
export interface FailOverTimes {
  /** The primary is gone (or, left alone, cut off). */
  readonly diedAt: number;
  /** The other server takes writes. */
  readonly promotedAt: number;
  /** The address leads there. */
  readonly pointedAt: number;
}

export interface Cluster extends AsyncDisposable {
  readonly kind: ServerKind;
  readonly replication: ReplicationMode;
  /** The address that clients use, of the database that is always there. It stays the same and follows the primary. */
  readonly url: string;
  /** Both servers in one URL, in the order in which they were started. It stays the same as well. */
  readonly hostsUrl: string;
  readonly primary: TestServer;
  /** Undefined between `failOver` and `addStandby`. */
  readonly standby: TestServer | undefined;
  /** A primary that was left alive by `failOver`. */
  readonly former: TestServer | undefined;
  /** What stands at the address: its rules and `cutAll` spoil connections of clients. */
  readonly address: Proxy;
  urlOf(database: string): string;
  hostsUrlOf(database: string): string;
  /** Statements on the primary. */
  run(...statements: readonly string[]): Promise<void>;
  /** The standby receives nothing more until `resumeReplication`: it misses what is committed now. In mode "sync" commits hang. */
  pauseReplication(): Promise<void>;
  resumeReplication(): Promise<void>;
  /** Resolves when the standby has applied all that is committed now. */
  catchUp(): Promise<void>;
  /** Ends the primary, promotes the standby and points the address there. */
  failOver(options?: FailOverOptions): Promise<FailOverTimes>;
  /** A new standby at the place of the server that died, or was left behind (which ends now). */
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
  /** C1 */
  readonly #ports: readonly [number, number];
  /** Where a new standby goes, and what is still to be removed there. */
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
