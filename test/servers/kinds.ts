// Kinds: how each kind of server is found, initialized, started and checked.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { findMariadb, findPostgres } from "../../scripts/servers.mjs";
import type { Command } from "./supervised-process.ts";

export type ServerKind = "postgres" | "mysql";

export type Settings = Readonly<Record<string, string | number>>;

interface Kind {
  readonly name: string;
  /** The account that runs it when tests run as root: the first one that exists. */
  readonly accounts: readonly string[];
  readonly oldest: readonly [major: number, minor: number];
  /** Undefined when it is not installed. */
  version(): string | undefined;
  initialise(data: string): Command;
  serve(data: string, port: number, settings: Settings): Command;
  /** For a clean shutdown. */
  readonly stopSignal: NodeJS.Signals;
  /** For a fast end that leaves nothing on the machine. */
  readonly endSignal: NodeJS.Signals;
  url(port: number, database?: string): string;
  run(url: string, ...statements: readonly string[]): Promise<void>;
}

const HOST = "127.0.0.1";

const postgres: Kind = {
  name: "PostgreSQL",
  accounts: ["postgres", "nobody"],
  oldest: [15, 0],
  version: () => {
    const folder = findPostgres();
    return folder === undefined ? undefined : versionOf(join(folder, "postgres"));
  },
  initialise: (data) => ({
    command: join(findPostgres()!, "initdb"),
    // servers.S3
    args: [
      ...["--pgdata", data, "--username=postgres", "--auth=trust", "--encoding=UTF8"],
      ...["--no-sync", "--locale=C", "--locale-provider=icu", "--icu-locale=en-US", "--no-instructions"],
    ],
  }),
  serve: (data, port, settings) => ({
    command: join(findPostgres()!, "postgres"),
    args: [
      ...["-D", data],
      ...Object.entries({
        listen_addresses: HOST,
        port,
        unix_socket_directories: join(data, ".."),
        max_connections: 200,
        // In its own folder: after a kill, deleting the folder removes everything.
        dynamic_shared_memory_type: "mmap",
        ...settings,
      }).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
  }),
  stopSignal: "SIGINT",
  // A kill would leave a shared memory segment.
  endSignal: "SIGQUIT",
  url: (port, database = "postgres") => `postgres://postgres@${HOST}:${port}/${database}`,
  run: async (url, ...statements) => {
    const client = new Client({ connectionString: url });
    // The connection may break while it is closed.
    client.on("error", () => undefined);
    try {
      await client.connect();
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  },
};

const mysql: Kind = {
  name: "MariaDB",
  accounts: ["mysql", "nobody"],
  oldest: [10, 6],
  version: () => {
    const programs = findMariadb();
    return programs === undefined ? undefined : versionOf(programs.server);
  },
  initialise: (data) => ({
    command: findMariadb()!.initialise,
    args: [
      ...["--no-defaults", `--datadir=${data}`, "--auth-root-authentication-method=normal", "--skip-test-db"],
      ...["--skip-name-resolve", `--innodb-log-file-size=${LOG_SIZE}`],
    ],
  }),
  // servers.S3. Without --character-set-server it is latin1, compared without case.
  serve: (data, port, settings) => ({
    command: findMariadb()!.server,
    args: [
      "--no-defaults",
      `--datadir=${data}`,
      ...Object.entries({
        "bind-address": HOST,
        port,
        socket: join(data, "../mysql.sock"),
        "pid-file": join(data, "../mysql.pid"),
        "skip-name-resolve": 1,
        "innodb-log-file-size": LOG_SIZE,
        "max-connections": 300,
        ...settings,
      }).map(([name, value]) => `--${name}=${value}`),
    ],
  }),
  stopSignal: "SIGTERM",
  endSignal: "SIGKILL",
  url: (port, database = "mysql") => `mysql://root@${HOST}:${port}/${database}`,
  run: async (url, ...statements) => {
    const connection = await createConnection(url);
    try {
      for (const statement of statements) await connection.query(statement);
    } finally {
      await connection.end().catch(() => connection.destroy());
    }
  },
};

/** A third of the default size: it is copied for every private server. */
const LOG_SIZE = "32M";

export const KINDS: Readonly<Record<ServerKind, Kind>> = { postgres, mysql };

function versionOf(program: string): string {
  const said = execFileSync(program, ["--version"], { encoding: "utf8" });
  return /\d+\.\d+(?:\.\d+)?/.exec(said)?.[0] ?? said.trim();
}

/** Why this machine has no such server, for the report; undefined when it has one. */
export function whyNot(kind: ServerKind): string | undefined {
  const { name, oldest } = KINDS[kind];
  if (process.env["REPRISE_SERVERS"] === "none") return `${name} is left out by REPRISE_SERVERS=none`;
  const wanted = `${name} ${oldest.join(".")} or newer`;
  const version = versionOn(kind);
  if (version === undefined) return `${wanted} is not installed; npm test installs it when run by root on Debian`;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isNewEnough = major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
  return isNewEnough ? undefined : `${wanted} is needed, and ${version} is installed`;
}

const versions = new Map<ServerKind, string | undefined>();

export function versionOn(kind: ServerKind): string | undefined {
  if (!versions.has(kind)) versions.set(kind, KINDS[kind].version());
  return versions.get(kind);
}
