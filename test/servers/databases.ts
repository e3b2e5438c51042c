// Databases: an empty database for one test.

import { randomBytes } from "node:crypto";
import type { Cluster } from "./cluster.ts";
import { sharedServer } from "./shared-servers.ts";
import { KINDS, type ServerKind } from "./kinds.ts";
import type { TestServer } from "./server.ts";

export interface FreshDatabase extends AsyncDisposable {
  readonly kind: ServerKind;
  readonly name: string;
  readonly url: string;
  /** Runs statements in it. */
  run(...statements: readonly string[]): Promise<void>;
}

/**
 * Creates an empty database, on the shared server of that kind or on the given one; `await using` drops it. In a cluster it
 * has the address that follows the primary, and is removed with the cluster.
 */
export async function freshDatabase(on: ServerKind | TestServer | Cluster): Promise<FreshDatabase> {
  const server = typeof on === "string" ? await sharedServer(on) : on;
  const { run } = KINDS[server.kind];
  const name = `t_${randomBytes(8).toString("hex")}`;
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  await run(server.url, `create database ${name}`);
  return {
    kind: server.kind,
    name,
    url: url.href,
    run: (...statements) => run(url.href, ...statements),
    [Symbol.asyncDispose]: async () => {
      // A test that killed its server has nothing to drop.
      if (typeof on !== "string" && (!("pid" in on) || on.pid === undefined)) return;
      // Disconnect remaining clients.
      const force = server.kind === "postgres" ? " with (force)" : "";
      await run(server.url, `drop database if exists ${name}${force}`);
    },
  };
}
