// Replication: how each kind of server creates a standby, replicates, pauses and is promoted.

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { findPostgres } from "../../scripts/servers.mjs";
import { runQuery } from "./run-query.ts";
import type { ServerKind, Settings } from "./kinds.ts";
import { startServer, type ServerOptions, type TestServer } from "./server.ts";

/** "sync": a commit is acknowledged when the standby has it on disk (MariaDB: in its relay log, AFTER_SYNC). */
export type ReplicationMode = "async" | "sync";

export interface Replication {
  startPrimary(options: ServerOptions): Promise<TestServer>;
  /** Resolves when it replicates the primary. In mode "sync", commits of the primary wait for it from then on. */
  startStandby(primary: TestServer, mode: ReplicationMode, options: ServerOptions): Promise<TestServer>;
  /** The standby receives nothing more. It still applies what it has received. */
  pause(standby: TestServer): Promise<void>;
  resume(standby: TestServer, primary: TestServer): Promise<void>;
  /** Resolves when the standby has applied everything committed on the primary until now. */
  catchUp(standby: TestServer, primary: TestServer): Promise<void>;
  /** Resolves when the standby accepts writes. Its commits do not wait until it has its own standby. */
  promote(standby: TestServer): Promise<void>;
  /** Makes the server read-only and waits until it has sent everything: for a planned switchover. */
  demote(primary: TestServer, standby: TestServer): Promise<void>;
}

const FOLLOWS_MS = 60_000;

async function until(what: string, isSo: () => Promise<boolean>, why = async () => ""): Promise<void> {
  const giveUpAt = performance.now() + FOLLOWS_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${FOLLOWS_MS / 1_000} s for: ${what} ${await why()}`);
    await sleep(10);
  }
}

const SENDERS = "select count(*)::int from pg_stat_replication where state = 'streaming'";
const RECEIVERS = "select count(*)::int from pg_stat_wal_receiver";
const FOLLOW = "alter system set primary_conninfo";

function conninfo(primary: TestServer): string {
  return `user=postgres host=127.0.0.1 port=${primary.port} application_name=standby`;
}

const postgres: Replication = {
  startPrimary: (options) => startServer("postgres", withSettings(options, PG_MEMBER)),
  startStandby: async (primary, mode, options) => {
    const copy = (data: string) => ({
      command: join(findPostgres()!, "pg_basebackup"),
      args: [
        ...["--pgdata", data, "--dbname", conninfo(primary), "--checkpoint=fast", "--wal-method=stream"],
        ...["--write-recovery-conf", "--no-sync"],
      ],
    });
    const standby = await startServer("postgres", { ...withSettings(options, PG_MEMBER), makeData: copy });
    await until("a standby that streams", async () => (await runQuery(primary.url, SENDERS))[0] === 1);
    if (mode === "sync")
      await primary.run("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()");
    if (mode === "sync")
      await until("a synchronous standby", async () =>
        (await runQuery(primary.url, "select sync_state from pg_stat_replication")).includes("sync"),
      );
    return standby;
  },
  pause: async (standby) => {
    await standby.run(`${FOLLOW} = ''`, "select pg_reload_conf()");
    await until("the standby to stop receiving", async () => (await runQuery(standby.url, RECEIVERS))[0] === 0);
  },
  resume: async (standby, primary) => {
    await standby.run(`${FOLLOW} = '${conninfo(primary)}'`, "select pg_reload_conf()");
    await until("the standby to receive", async () => (await runQuery(standby.url, RECEIVERS))[0] === 1);
  },
  catchUp: async (standby, primary) => {
    const [end] = await runQuery(primary.url, "select pg_current_wal_flush_lsn()::text");
    const hasAll = `select coalesce(pg_last_wal_replay_lsn() >= '${String(end)}', false)`;
    await until("the standby to catch up", async () => (await runQuery(standby.url, hasAll))[0] === true);
  },
  promote: async (standby) => {
    const [isPromoted] = await runQuery(standby.url, "select pg_promote(true, 60)");
    if (isPromoted !== true) throw new Error(`PostgreSQL could not be promoted:\n${standby.log().slice(-2_000)}`);
  },
  // A clean shutdown sends everything to the standby first.
  demote: (primary) => primary.stop(),
};

const PG_MEMBER: Settings = {
  // A standby that was disconnected for a while can still catch up.
  wal_keep_size: "1GB",
  wal_retrieve_retry_interval: "200ms",
};

let serverId = 0;

/** Every server needs its own number: a server skips changes with its own number. */
function mariadbMember(): Settings {
  serverId += 1;
  return {
    "server-id": serverId,
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "sync-binlog": 1,
    "log-slave-updates": 1,
    "slave-net-timeout": 4,
    "rpl-semi-sync-slave-enabled": 1,
    "rpl-semi-sync-master-wait-point": "AFTER_SYNC",
    // By default a primary waits 10 s for its standby and then acknowledges without it.
    "rpl-semi-sync-master-timeout": 3_600_000,
  };
}

async function slaveStatus(standby: TestServer): Promise<RowDataPacket> {
  const connection = await createConnection(standby.url);
  try {
    const [rows] = await connection.query<RowDataPacket[]>("show slave status");
    return rows[0]!;
  } finally {
    await connection.end().catch(() => connection.destroy());
  }
}

async function waitForGtid(standby: TestServer, gtid: string): Promise<void> {
  const [waited] = await runQuery(standby.url, `select master_gtid_wait('${gtid}', ${FOLLOWS_MS / 1_000})`);
  if (waited !== 0)
    throw new Error(`MariaDB did not apply ${gtid}: ${String((await slaveStatus(standby))["Last_SQL_Error"])}`);
}

const mysql: Replication = {
  startPrimary: (options) => startServer("mysql", withSettings(options, mariadbMember())),
  // It starts as empty as the primary did, and replays everything the primary has logged since.
  startStandby: async (primary, mode, options) => {
    const standby = await startServer("mysql", withSettings(options, { ...mariadbMember(), "read-only": 1 }));
    await standby.run(
      `change master to master_host='127.0.0.1', master_port=${primary.port}, master_user='root', master_connect_retry=1, master_use_gtid=slave_pos`,
    );
    await mysql.resume(standby, primary);
    await mysql.catchUp(standby, primary);
    if (mode === "sync") {
      const clients = "select variable_value from information_schema.global_status where variable_name = ";
      await until("a semi-synchronous standby", async () =>
        (await runQuery(primary.url, `${clients} 'rpl_semi_sync_master_clients'`)).includes("1"),
      );
      await primary.run("set global rpl_semi_sync_master_enabled = 1");
    }
    return standby;
  },
  pause: (standby) => standby.run("stop slave io_thread"),
  resume: async (standby) => {
    await standby.run("start slave");
    await until(
      "the standby to receive",
      async () => (await slaveStatus(standby))["Slave_IO_Running"] === "Yes",
      async () => JSON.stringify(await slaveStatus(standby)),
    );
  },
  catchUp: async (standby, primary) => {
    const [end] = await runQuery(primary.url, "select @@gtid_binlog_pos");
    await waitForGtid(standby, String(end));
  },
  promote: async (standby) => {
    await standby.run("stop slave io_thread");
    await waitForGtid(standby, String((await slaveStatus(standby))["Gtid_IO_Pos"]));
    await standby.run("stop slave", "reset slave all", "set global read_only = 0");
  },
  demote: async (primary, standby) => {
    await primary.run("set global read_only = 1");
    await mysql.catchUp(standby, primary);
    await primary.stop();
  },
};

function withSettings(options: ServerOptions, settings: Settings): ServerOptions {
  return { ...options, settings: { ...settings, ...options.settings } };
}

export const REPLICATION: Readonly<Record<ServerKind, Replication>> = { postgres, mysql };
