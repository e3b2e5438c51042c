// Subject: the store under test, with its server if it has one.
//
// A rig that kills, fills or wraps its server gets its own server; all others share one per process.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { Client } from "pg";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { storeOf } from "../../src/stores/store-url.ts";
import type { Store } from "../../src/kernel/index.ts";
import { startCluster, type Cluster, type ClusterOptions } from "../servers/cluster.ts";
import { freshDatabase } from "../servers/databases.ts";
import { whyNot } from "../servers/kinds.ts";
import { fastFolder, startServer, type ServerOptions, type TestServer } from "../servers/server.ts";

export type StoreKind = "sqlite" | "postgres" | "mysql";
export const ALL: readonly StoreKind[] = ["sqlite", "postgres", "mysql"];
export const SERVERS: readonly StoreKind[] = ["postgres", "mysql"];

export type Rows = readonly Readonly<Record<string, unknown>>[];

export interface Subject extends AsyncDisposable {
  readonly kind: StoreKind;
  /** For `createEngine({ store })`. */
  readonly url: string;
  /** A folder for the rig's files; deleted with the subject. */
  readonly folder: string;
  /** Only if the rig has its own server. */
  readonly server: TestServer | undefined;
  /** Runs one statement on a separate connection. */
  sql(text: string): Promise<Rows>;
  /** The name of one of Reprise's tables in this database. */
  table(name: string): string;
}

export interface SubjectOptions extends ServerOptions {
  readonly ownServer?: boolean;
}

/** Why this machine cannot run a store; undefined when it can. */
export function obstacle(kind: StoreKind): string | undefined {
  return kind === "sqlite" ? undefined : whyNot(kind);
}

/** Its name in the report. */
export async function titleOf(kind: StoreKind): Promise<string> {
  if (kind === "sqlite") return `SQLite ${process.versions["sqlite"] ?? ""}`.trim();
  const { version } = await sharedServer(kind);
  return `${kind === "postgres" ? "PostgreSQL" : "MariaDB"} ${version}`;
}

const shared = new Map<StoreKind, Promise<TestServer>>();

function sharedServer(kind: "postgres" | "mysql"): Promise<TestServer> {
  const server = shared.get(kind) ?? startServer(kind, { under: fastFolder() });
  shared.set(kind, server);
  return server;
}

export async function endSharedServers(): Promise<void> {
  const servers = [...shared.values()];
  shared.clear();
  for (const server of servers) await (await server)[Symbol.asyncDispose]();
}

/** Creates an empty store. `await using` removes it. */
export async function openSubject(kind: StoreKind, options: SubjectOptions = {}): Promise<Subject> {
  const folder = mkdtempSync(join(options.under ?? tmpdir(), "reprise-faults-"));
  const end = (): void => rmSync(folder, { recursive: true, force: true });
  if (kind === "sqlite") {
    const path = join(folder, "store.db");
    return {
      kind,
      url: `sqlite:${path}`,
      folder,
      server: undefined,
      sql: async (text) => askFile(path, text),
      table: (name) => name,
      [Symbol.asyncDispose]: async () => end(),
    };
  }
  const server =
    options.ownServer === true
      ? await startServer(kind, { under: fastFolder(), ...options })
      : await sharedServer(kind);
  const database = await freshDatabase(server);
  return {
    kind,
    url: database.url,
    folder,
    server: options.ownServer === true ? server : undefined,
    ...handTo(kind, database.url),
    [Symbol.asyncDispose]: async () => {
      if (options.ownServer === true) await server[Symbol.asyncDispose]();
      else await database[Symbol.asyncDispose]();
      end();
    },
  };
}

/** Direct SQL access to a store on a server. */
function handTo(kind: "postgres" | "mysql", url: string): Pick<Subject, "sql" | "table"> {
  return {
    sql: (text) => (kind === "postgres" ? askPostgres(url, text) : askMysql(url, text)),
    table: (name) => (kind === "postgres" ? `reprise.${name}` : `reprise_${name}`),
  };
}

export interface ClusterSubject extends Subject {
  readonly cluster: Cluster;
  /** The same store, by a URL with both servers. */
  readonly hostsUrl: string;
}

/** Creates an empty store on a primary with a standby; `url` is the address that follows the primary. */
export async function openClusterSubject(kind: StoreKind, options: ClusterOptions): Promise<ClusterSubject> {
  if (kind === "sqlite") throw new Error("SQLite has no clusters.");
  const folder = mkdtempSync(join(tmpdir(), "reprise-faults-"));
  const cluster = await startCluster(kind, options);
  const database = await freshDatabase(cluster);
  return {
    kind,
    url: database.url,
    hostsUrl: cluster.hostsUrlOf(database.name),
    folder,
    server: undefined,
    cluster,
    ...handTo(kind, database.url),
    [Symbol.asyncDispose]: async () => {
      await cluster[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Opens the store without an engine, for checks. */
export async function openStore({ url }: Pick<Subject, "url">): Promise<Store> {
  const options = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "full" } as const;
  return storeOf(url)["~open"](options);
}

function askFile(path: string, text: string): Rows {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  try {
    return db.prepare(text).all();
  } finally {
    db.close();
  }
}

async function askPostgres(url: string, text: string): Promise<Rows> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

async function askMysql(url: string, text: string): Promise<Rows> {
  const connection = await createConnection(url);
  try {
    const [rows] = await connection.query<RowDataPacket[]>(text);
    return Array.isArray(rows) ? rows : [];
  } finally {
    connection.destroy();
  }
}
