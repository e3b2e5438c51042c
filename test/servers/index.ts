// Servers: real PostgreSQL and MariaDB for tests. Nothing here is started before a test asks for it.
//
//   describeOn("postgres", "a store", () => {
//     test("keeps what it was given", async () => {
//       await using database = await freshDatabase("postgres");
//       … database.url …
//     });
//   });
//
//   await using server = await startServer("mysql", { settings: { "innodb-lock-wait-timeout": 1 } });
//   await using database = await freshDatabase(server);
//   await server.kill();
//   await server.start();
//
// `freshDatabase(kind)` makes an empty database on a server that the whole test run shares (desk.ts), with its files in
// memory: never stop that one and never change its settings. `startServer(kind)` starts a server for one test, on disk
// unless told otherwise, which may be killed, deafened, configured, wrapped and started again (server.ts).
// `startCluster(kind, { replication })` starts a primary with a standby behind one address, and fails over (cluster.ts).
// `startHaProxy(…urls)` is a real HAProxy that finds the primary among servers (haproxy.ts).
// `startPgBouncer(url, mode)` is a real PgBouncer in front of a server (pgbouncer.ts).
// `startProxy(url)` stands between a client and a server and spoils what passes (proxy.ts). `npm test` installs what is
// missing (scripts/servers.mjs).
//
// Outside vitest every file but describe.ts (and so this one) can be imported as it is, and `node test/servers/serve.ts
// postgres` prints the address of a server that lives as long as its input stays open.
//
// S1. A server and its folder are gone when the process that started it is, however it ended.
// S2. Servers have the durability settings of production; what wants less says so in its settings.
// S3. Text is not compared as bytes by default: a store that forgets to ask for bytes fails here, not at a user's.
// S4. A missing server is a skip with a reason; in CI it is a failure.

export {
  startCluster,
  type Cluster,
  type ClusterOptions,
  type FailOverOptions,
  type FailOverTimes,
} from "./cluster.ts";
export { freshDatabase, type FreshDatabase } from "./databases.ts";
export { describeOn } from "./describe.ts";
export { sharedServer, type SharedServer } from "./shared-servers.ts";
export { whyNot, type ServerKind, type Settings } from "./kinds.ts";
export { startHaProxy, whyNoHaProxy, type HaProxy } from "./haproxy.ts";
export { startPgBouncer, whyNoPgBouncer, type PgBouncer } from "./pgbouncer.ts";
export { isCommit, startProxy, type Fate, type Proxy, type ProxyMessage, type Rule } from "./proxy.ts";
export { fastFolder, startServer, type ServerOptions, type TestServer } from "./server.ts";
