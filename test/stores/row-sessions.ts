// Row sessions: a new, empty database of every kind, whose rows a test reads and writes through the row port.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom, systemTimers, type PayloadCodec } from "../../src/base/index.ts";
import type { PayloadCipher } from "../../src/stores/payload-cipher.ts";
import type { Backend } from "../../src/stores/remote/backend.ts";
import { openMysqlBackend } from "../../src/stores/mysql/backend.ts";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import { rowSession as remoteRows } from "../../src/stores/remote/row-session.ts";
import { RemoteSession } from "../../src/stores/remote/session.ts";
import type { RowSession } from "../../src/stores/rows/rows.ts";
import { rowSession } from "../../src/stores/sqlite/row-session.ts";
import { SqliteSession } from "../../src/stores/sqlite/sqlite-session.ts";
import { freshDatabase } from "../servers/index.ts";
import { SimServer } from "../simulation/store/sim-backend.ts";

export interface Opened extends AsyncDisposable {
  readonly session: RowSession;
  readonly cipher: PayloadCipher | undefined;
}

export type Open = (codec?: PayloadCodec) => Promise<Opened>;

const ports = { clock: systemClock, timers: systemTimers, random: systemRandom } as const;

export interface TestStore extends AsyncDisposable {
  readonly open: Open;
}

export async function sqlite(): Promise<TestStore> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-rows-"));
  const open: Open = async (codec) => {
    const path = join(folder, "store.db");
    const session = await SqliteSession.open({ ...ports, path, durability: "relaxed", migrate: true, codec });
    const { cipher } = session.connection;
    return { session: rowSession(session), cipher, [Symbol.asyncDispose]: () => session.close() };
  };
  return { open, [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }) };
}

function openRemote(backend: () => Backend | Promise<Backend>): Open {
  return async (codec) => {
    const session = await RemoteSession.open(await backend(), { ...ports, durability: "full", codec });
    return { session: remoteRows(session), cipher: session.cipher, [Symbol.asyncDispose]: () => session.close() };
  };
}

export async function simulated(): Promise<TestStore> {
  const server = new SimServer("rc", () => systemClock.now());
  return { open: openRemote(() => server.backend()), [Symbol.asyncDispose]: async () => undefined };
}

export async function postgres(): Promise<TestStore> {
  const database = await freshDatabase("postgres");
  const open = openRemote(() => openPostgresBackend({ url: database.url }));
  return { open, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

export async function mysql(): Promise<TestStore> {
  const { random, timers } = ports;
  const database = await freshDatabase("mysql");
  const open = openRemote(() => openMysqlBackend({ url: database.url, random, timers, durability: "full" }));
  return { open, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}
