// Temporal: its server in another process on the PostgreSQL server; the worker and its activities in this process.
//
// npm has no package of the server: `go install` builds it once into a cache folder outside the repository. A step is an activity, because
// only that is durable before the next one starts: the server records the local activities of a workflow task together, when it ends.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { DefaultLogger, NativeConnection, Runtime, Worker } from "@temporalio/worker";

const SERVER_VERSION = "v1.32.1";
const PROGRAMS = { server: "go.temporal.io/server/cmd/server", sql: "go.temporal.io/server/cmd/tools/sql" };
const CACHE = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
const PROGRAMS_FOLDER = join(CACHE, "reprise-bench", `temporal-${SERVER_VERSION}`);
/** Of a small cluster. It cannot be changed later, so four, as in the configuration for development, is not what people run. */
const HISTORY_SHARDS = Number(process.env.TEMPORAL_SHARDS ?? 128);
const NAMESPACE = "bench";
const TASK_QUEUE = "bench";

export function prepare() {
  for (const [program, source] of Object.entries(PROGRAMS)) {
    if (existsSync(join(PROGRAMS_FOLDER, program))) continue;
    console.error(`building Temporal's ${program} ${SERVER_VERSION} with Go …`);
    mkdirSync(PROGRAMS_FOLDER, { recursive: true });
    const env = { ...process.env, GOBIN: PROGRAMS_FOLDER };
    const { error, status } = spawnSync("go", ["install", `${source}@${SERVER_VERSION}`], {
      env,
      stdio: ["ignore", 2, 2],
    });
    if (error !== undefined) throw new Error(`Temporal's server needs a Go toolchain to be built: ${error.message}`);
    if (status !== 0) throw new Error(`Temporal's server could not be built: go install ended with ${status}`);
  }
}

/** Below 32,768: the server writes ports into a smallint column of PostgreSQL. */
async function freePorts(count) {
  const ports = [];
  while (ports.length < count) {
    const socket = createServer();
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const isFree = await new Promise((resolve) => {
      socket.once("error", () => resolve(false));
      socket.listen(port, "127.0.0.1", () => socket.close(() => resolve(true)));
    });
    if (isFree && !ports.includes(port)) ports.push(port);
  }
  return ports;
}

/** The tables of the history and those for searching are in two databases. */
function createTables(postgres, name, schema) {
  const tool = (...args) =>
    execFileSync(
      join(PROGRAMS_FOLDER, "sql"),
      [
        ...["--plugin", "postgres12", "--endpoint", postgres.hostname, "--port", postgres.port],
        ...["--user", postgres.username, "--password", postgres.password, "--database", name, ...args],
      ],
      { stdio: ["ignore", "ignore", "pipe"], maxBuffer: 64 * 1_048_576 },
    );
  if (schema === "visibility") tool("create-database");
  tool("setup-schema", "--version", "0.0");
  tool("update-schema", "--schema-name", `postgresql/v12/${schema}`);
}

/** YAML reads JSON. After config/development-postgres12.yaml. */
function configurationOf(postgres, names, connections, ports) {
  const sql = (databaseName, maxConns) => ({
    sql: {
      ...{ pluginName: "postgres12", databaseName, connectAddr: postgres.host, connectProtocol: "tcp" },
      ...{
        user: postgres.username,
        password: postgres.password,
        maxConns,
        maxIdleConns: maxConns,
        maxConnLifetime: "1h",
      },
    },
  });
  const [frontend, ...rest] = ports;
  const rpc = (grpcPort) => ({ rpc: { grpcPort, membershipPort: rest.pop(), bindOnLocalHost: true } });
  return {
    log: { stdout: true, level: "error" },
    persistence: {
      ...{ defaultStore: "main", visibilityStore: "visibility", numHistoryShards: HISTORY_SHARDS },
      datastores: { main: sql(names.main, connections), visibility: sql(names.visibility, 4) },
    },
    global: { membership: { maxJoinDuration: "30s", broadcastAddress: "127.0.0.1" } },
    services: {
      frontend: rpc(frontend),
      matching: rpc(rest.pop()),
      history: rpc(rest.pop()),
      worker: rpc(rest.pop()),
    },
    clusterMetadata: {
      ...{ enableGlobalNamespace: false, failoverVersionIncrement: 10, masterClusterName: "active" },
      currentClusterName: "active",
      clusterInformation: {
        active: {
          ...{ enabled: true, initialFailoverVersion: 1, rpcName: "frontend", rpcAddress: `127.0.0.1:${frontend}` },
        },
      },
    },
  };
}

/** Repeats `action` until it succeeds: the server needs some seconds, and again to learn of a namespace. */
async function eventually(action, server) {
  const deadline = performance.now() + 90_000;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (server.exitCode !== null) throw new Error(`error: Temporal's server ended with ${server.exitCode}`);
      if (performance.now() > deadline) throw error;
      await wait(200);
    }
  }
}

export async function open({ url, folder, connections, concurrency, queueConcurrency }) {
  Runtime.install({ logger: new DefaultLogger("ERROR") });
  const postgres = new URL(url);
  const main = postgres.pathname.slice(1);
  const names = { main, visibility: `${main}_visibility` };
  createTables(postgres, names.main, "temporal");
  createTables(postgres, names.visibility, "visibility");
  const ports = await freePorts(8);
  const file = join(folder, "temporal.yaml");
  writeFileSync(file, JSON.stringify(configurationOf(postgres, names, connections, ports)));
  const server = spawn(join(PROGRAMS_FOLDER, "server"), ["--config-file", file, "--allow-no-auth", "start"], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  process.once("exit", () => server.kill("SIGKILL"));
  const address = `127.0.0.1:${ports[0]}`;
  const connection = await eventually(() => Connection.connect({ address, connectTimeout: "2s" }), server);
  await eventually(
    () =>
      connection.workflowService.registerNamespace({
        namespace: NAMESPACE,
        workflowExecutionRetentionPeriod: { seconds: 86_400 },
      }),
    server,
  );
  const client = new Client({ connection, namespace: NAMESPACE });
  await eventually(() => client.workflow.count(), server);

  const ended = new Map();
  const tasks = Math.max(concurrency, queueConcurrency);
  const pollers = { type: "autoscaling", minimum: 1, initial: 5, maximum: 50 };
  const worker = await eventually(
    async () =>
      Worker.create({
        connection: await NativeConnection.connect({ address }),
        namespace: NAMESPACE,
        taskQueue: TASK_QUEUE,
        workflowsPath: fileURLToPath(new URL("temporal-workflows.mjs", import.meta.url)),
        activities: { trivial: async (index) => ({ index, text: "a small answer" }) },
        sinks: { ended: { note: { fn: (_info, index) => ended.get(index)?.() } } },
        maxConcurrentActivityTaskExecutions: tasks,
        maxConcurrentWorkflowTaskExecutions: tasks,
        maxCachedWorkflows: 4 * tasks,
        workflowTaskPollerBehavior: pollers,
        activityTaskPollerBehavior: pollers,
      }),
    server,
  );
  const running = worker.run();
  let last = 0;
  const options = (...args) => ({ taskQueue: TASK_QUEUE, workflowId: `${process.pid}-${(last += 1)}`, args });
  return {
    pids: [server.pid],
    run: (count) => client.workflow.execute("steps", options(count)),
    enqueue: async (indexes, onEnd) => {
      const waiting = indexes.values();
      const start = async () => {
        for (const index of waiting) {
          ended.set(index, onEnd);
          await client.workflow.start("job", options(index));
        }
      };
      // More requests at once only wait in the server.
      await Promise.all(Array.from({ length: queueConcurrency }, start));
    },
    async close() {
      worker.shutdown();
      await running;
      server.kill("SIGKILL");
    },
  };
}
