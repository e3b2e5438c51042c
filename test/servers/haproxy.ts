// HAProxy in front of the servers of a cluster. It finds the primary: its health check queries each server twice a second
// whether it is a standby, and closes sessions with a server that is no longer the primary.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onPath } from "../../scripts/servers.mjs";
import { runQuery } from "./run-query.ts";
import { freePort, SupervisedProcess } from "./supervised-process.ts";
import { whyNot } from "./kinds.ts";
import { fastFolder } from "./server.ts";

export interface HaProxy extends AsyncDisposable {
  /** The address of a database through HAProxy. */
  urlOf(database: string): string;
  log(): string;
}

/** Why this machine cannot run it. */
export function whyNoHaProxy(): string | undefined {
  const isThere = onPath("haproxy") !== undefined && onPath("psql") !== undefined;
  return (
    whyNot("postgres") ?? (isThere ? undefined : "HAProxy is not installed; npm test installs it by root on Debian")
  );
}

async function isInRecovery(url: string): Promise<boolean> {
  const [isStandby] = await runQuery(url, "select pg_is_in_recovery()");
  return isStandby === true;
}

/** `urls`: the addresses of one database on each server. */
export async function startHaProxy(...urls: readonly string[]): Promise<HaProxy> {
  const servers = urls.map((url) => new URL(url));
  const port = await freePort();
  const kept = new SupervisedProcess({
    name: "HAProxy",
    accounts: ["postgres", "nobody"],
    stopSignal: "SIGUSR1",
    endSignal: "SIGTERM",
    under: fastFolder(),
  });
  const check = join(kept.folder, "is-primary");
  const user = servers[0]!.username;
  // HAProxy passes its own address and the server's.
  const asked = `exec ${onPath("psql")} -h "$3" -p "$4" -U ${user} -d postgres -Atqc 'select 1 / (not pg_is_in_recovery())::int'`;
  writeFileSync(check, `#!/bin/sh\n${asked} >/dev/null 2>&1\n`);
  chmodSync(check, 0o755);
  const path = join(kept.folder, "haproxy.cfg");
  const lines = [
    "global",
    "  external-check",
    "  insecure-fork-wanted",
    "defaults",
    "  mode tcp",
    "  timeout connect 5s",
    "  timeout client 1h",
    "  timeout server 1h",
    "listen primary",
    `  bind 127.0.0.1:${port}`,
    "  option external-check",
    `  external-check command ${check}`,
    "  default-server check inter 500ms fall 1 rise 1 on-marked-down shutdown-sessions",
    ...servers.map(({ hostname, port: to }, at) => `  server pg${at} ${hostname}:${to}`),
    "",
  ];
  writeFileSync(path, lines.join("\n"));
  chmodSync(path, 0o644);
  const urlOf = (database: string): string => {
    const through = new URL(servers[0]!.href);
    through.port = String(port);
    through.pathname = `/${database}`;
    return through.href;
  };
  try {
    await kept.launch({ command: onPath("haproxy")!, args: ["-db", "-f", path] });
    const isStandby = await Promise.all(urls.map(isInRecovery));
    // Until the first checks are done, it treats every server as a primary. A check of the primary may fail on a busy machine,
    // so each standby must be marked down, and the server it leads to must be the primary.
    await kept.untilReady(async () => {
      const unmarked = isStandby.findIndex((is, at) => is && !kept.log().includes(`primary/pg${at} is DOWN`));
      if (unmarked !== -1) throw new Error(`it has not found out yet that pg${unmarked} is a standby`);
      if (await isInRecovery(urlOf("postgres"))) throw new Error("it leads to a standby");
    });
  } catch (error) {
    await kept[Symbol.asyncDispose]();
    throw error;
  }
  return { urlOf, log: () => kept.log(), [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose]() };
}
