// Shared servers: one server of each kind for a whole test run, started when the first test requests it. vitest's main process listens
// on a socket for requests of the processes that run test files; without the socket, a process starts its own server.

import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ServerKind } from "./kinds.ts";
import type { TestServer } from "./server.ts";

export interface SharedServer {
  readonly kind: ServerKind;
  readonly version: string;
  /** The address of the default database; tests create their own. */
  readonly url: string;
}

type Answer = { readonly server: SharedServer } | { readonly problem: string };

const HOST = "127.0.0.1";
/** The variable with the socket's port: set for every process of the test run. */
const PORT_VARIABLE = "REPRISE_TEST_SERVERS";

const known = new Map<ServerKind, Promise<SharedServer>>();

/** The server of this kind that the whole test run shares. */
export async function sharedServer(kind: ServerKind): Promise<SharedServer> {
  const port = process.env[PORT_VARIABLE];
  const server = known.get(kind) ?? (port === undefined ? start(kind) : request(port, kind));
  known.set(kind, server);
  return server;
}

async function start(kind: ServerKind): Promise<TestServer> {
  const { fastFolder, startServer } = await import("./server.ts");
  // Its files are in memory: keep the log small.
  const settings = kind === "postgres" ? { max_wal_size: "256MB" } : {};
  return startServer(kind, { under: fastFolder(), settings });
}

async function request(port: string, kind: ServerKind): Promise<SharedServer> {
  const socket = connect(Number(port), HOST);
  socket.end(kind);
  const answer = JSON.parse(await text(socket)) as Answer;
  if ("problem" in answer) throw new Error(answer.problem);
  return answer.server;
}

/** vitest's global set-up: opens the socket and returns the function that closes it. Starts no server. */
export default async function setUp(): Promise<() => Promise<void>> {
  const started = new Map<ServerKind, Promise<TestServer>>();
  const answer = async (kind: ServerKind): Promise<Answer> => {
    try {
      const server = started.get(kind) ?? start(kind);
      started.set(kind, server);
      const { version, url } = await server;
      return { server: { kind, version, url } };
    } catch (error) {
      return { problem: error instanceof Error ? error.message : String(error) };
    }
  };
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    void text(socket).then(
      async (kind) => socket.end(JSON.stringify(await answer(kind as ServerKind))),
      () => undefined,
    );
  });
  listener.listen(0, HOST);
  await once(listener, "listening");
  listener.unref();
  process.env[PORT_VARIABLE] = String((listener.address() as AddressInfo).port);
  return async () => {
    delete process.env[PORT_VARIABLE];
    listener.close();
    const servers = await Promise.allSettled(started.values());
    await Promise.all(servers.map((it) => (it.status === "fulfilled" ? it.value[Symbol.asyncDispose]() : undefined)));
  };
}
