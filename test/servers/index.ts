// Servers: real PostgreSQL and MariaDB servers for tests. A server is started when a test requests it.
//
//   describeOn("postgres", "a store", () => {
//     test("stores a value", async () => {
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
// `freshDatabase(kind)` creates an empty database on a server that the whole test run shares (shared-servers.ts), with its files in
// memory: do not stop it or change its settings. `startServer(kind)` starts a server for one test, on disk
// by default, which may be killed, suspended, configured, wrapped and restarted (server.ts).
// `startCluster(kind, { replication })` starts a primary with a standby behind one address, and fails over (cluster.ts).
// `startHaProxy(…urls)` is a real HAProxy that finds the primary among servers (haproxy.ts).
// `startNats()` is a real NATS server with JetStream (nats.ts).
// `startPgBouncer(url, mode)` is a real PgBouncer in front of a server (pgbouncer.ts).
// `startProxy(url)` is a proxy between a client and a server that drops, delays or cuts messages (proxy.ts). `npm test` installs
// missing servers (scripts/servers.mjs).
//
// Outside vitest, every file but describe.ts (and so this one) can be imported, and `node test/servers/serve.ts
// postgres` prints the address of a server that runs until its input is closed.
//
// servers.S1. A server and its folder are removed when the process that started it has ended, however it ended.
// servers.S2. Servers have production's durability settings, unless a test changes them.
// servers.S3. Text is not compared as bytes by default: a store that relies on the default fails here, not in production.
// servers.S4. Tests without a server are skipped with a reason; in CI they fail.

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
export { startNats, whyNoNats, type NatsOptions, type NatsServer } from "./nats.ts";
export { startS3, whyNoS3, type RealS3 } from "./s3.ts";
export { startPgBouncer, whyNoPgBouncer, type PgBouncer } from "./pgbouncer.ts";
export { isCommit, startProxy, type Fate, type Proxy, type ProxyMessage, type Rule } from "./proxy.ts";
export { fastFolder, startServer, type ServerOptions, type TestServer } from "./server.ts";
