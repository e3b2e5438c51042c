// PgBouncer in front of a PostgreSQL server.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onPath } from "../../scripts/servers.mjs";
import { runQuery } from "./run-query.ts";
import { freePort, SupervisedProcess } from "./supervised-process.ts";
import { whyNot, type Settings } from "./kinds.ts";
import { fastFolder } from "./server.ts";

export interface PgBouncer extends AsyncDisposable {
  /** The address of the same database through PgBouncer. */
  readonly url: string;
  /** Kills it and starts another one at the same address. */
  restart(): Promise<void>;
  log(): string;
}

/** Why this machine cannot run it. */
export function whyNoPgBouncer(): string | undefined {
  const isThere = onPath("pgbouncer") !== undefined;
  return (
    whyNot("postgres") ?? (isThere ? undefined : "PgBouncer is not installed; npm test installs it by root on Debian")
  );
}

export async function startPgBouncer(
  url: string,
  mode: "session" | "transaction" | "statement",
  settings: Settings = {},
): Promise<PgBouncer> {
  const target = new URL(url);
  const port = await freePort();
  const kept = new SupervisedProcess({
    name: "PgBouncer",
    accounts: ["postgres", "nobody"],
    stopSignal: "SIGINT",
    endSignal: "SIGTERM",
    under: fastFolder(),
  });
  const path = join(kept.folder, "pgbouncer.ini");
  const lines = Object.entries({
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "any",
    pool_mode: mode,
    max_client_conn: 500,
    default_pool_size: 100,
    ...settings,
  }).map(([name, value]) => `${name} = ${value}`);
  const server = `host=${target.hostname} port=${target.port} user=${target.username}`;
  writeFileSync(path, ["[databases]", `* = ${server}`, "[pgbouncer]", ...lines, ""].join("\n"));
  chmodSync(path, 0o644);
  const through = new URL(url);
  through.port = String(port);
  const start = async (): Promise<void> => {
    await kept.launch({ command: onPath("pgbouncer")!, args: ["-q", path] });
    await kept.untilReady(() => runQuery(through.href, "select 1"));
  };
  try {
    await start();
  } catch (error) {
    await kept[Symbol.asyncDispose]();
    throw error;
  }
  return {
    url: through.href,
    restart: async () => {
      await kept.kill();
      await start();
    },
    log: () => kept.log(),
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  };
}
