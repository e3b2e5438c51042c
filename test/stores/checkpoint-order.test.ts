// The key of a checkpoint is written before everything else of its commit (seed 003, net-changes.N3), so a step that is committed
// twice fails before anything else is written.

import { describe, expect, test } from "vitest";
import { systemRandom, systemTimers } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";
import { openMysqlBackend } from "../../src/stores/mysql/backend.ts";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import type { Backend, Change, WireRow } from "../../src/stores/remote/backend.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import { startGraph, step } from "../../src/testing/store-cases/checkpoints.ts";
import { registerWorker, turnWrite, type HeldTurn } from "../../src/testing/store-cases/store-actions.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { describeOn, freshDatabase, type ServerKind } from "../servers/index.ts";
import { runQuery } from "../servers/run-query.ts";
import { openSimBackend } from "../simulation/store/sim-backend.ts";

/** The commit of step 1, with a task, a chunk, a message to a destination and the read of an inbox row beside it. */
function fullStep(held: HeldTurn): Parameters<typeof turnWrite>[2] {
  const parts = step(held, 1);
  return {
    ...parts,
    entries: [...parts.entries!, ["TaskScheduled", "Task(0)"], ["MessageSent", "Message(0)"]],
    items: [{ item: "Task(0)", kind: "task", name: "charge", priority: 0, seq: held.head + 2 }],
    chunks: [{ stream: "words", number: undefined, data: '"a"' }],
    outgoing: [{ seq: held.head + 3, destination: "billing" }],
  };
}

async function openStore(backend: Backend, optimistic: boolean): Promise<Store> {
  const time = createVirtualTime();
  const ports = { clock: time.clock, timers: systemTimers, random: systemRandom };
  return openRemoteStore(backend, { ...ports, durability: "full", time: "given", optimistic });
}

/** The same backend; `beforeCommit` gets the changes of every commit before they are sent. */
function observed(backend: Backend, beforeCommit: (changes: readonly Change[]) => unknown): Backend {
  return new Proxy(backend, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name !== "connect") return member.bind(target) as unknown;
      return async () => {
        const connection = await target.connect();
        const commit = connection.commit.bind(connection);
        connection.commit = async (batch, mark, changes, check) => {
          await beforeCommit(changes);
          return commit(batch, mark, changes, check);
        };
        return connection;
      };
    },
  });
}

describe.each([
  ["optimistic", true],
  ["pessimistic", false],
] as const)("a commit, %s", (_name, optimistic) => {
  test("inserts its checkpoints before it changes any other row", async () => {
    const time = createVirtualTime();
    const commits: string[][] = [];
    const backend = observed(openSimBackend({ now: () => time.now() }), (changes) =>
      commits.push(changes.map(({ change, table }) => `${change} ${table}`)),
    );
    const store = await openStore(backend, optimistic);
    const held = await startGraph(store, await registerWorker(store), "a");
    const other = await startGraph(store, await registerWorker(store), "b");
    commits.length = 0;
    const outcomes = await store.write([held, other].map((one) => turnWrite(store, one, fullStep(one))));
    expect(outcomes.map(({ status }) => status)).toEqual(["committed", "committed"]);
    expect(commits).toHaveLength(1);
    const [first, ...others] = commits[0]!;
    expect(first).toBe("insert checkpoints");
    expect(others).toEqual(
      expect.arrayContaining(["update runs", "insert journal", "insert queue", "insert chunks", "insert outbox"]),
    );
    await store.close();
  });
});

/** Tables of a run that a step changes, and the change. */
const OBSERVED = [
  ["runs", "update"],
  ["journal", "insert"],
  ["queue", "insert"],
  ["chunks", "insert"],
  ["outbox", "insert"],
] as const;

/** Triggers count the rows that are written, also by transactions that are rolled back. */
const COUNTERS: Readonly<Record<ServerKind, { statements: readonly string[]; count: string }>> = {
  postgres: {
    statements: [
      "create sequence public.written minvalue 0 start 0",
      "select nextval('public.written')",
      `create function public.note_write() returns trigger language plpgsql as
        $$ begin perform nextval('public.written'); return new; end $$`,
      ...OBSERVED.map(
        ([table, change]) =>
          `create trigger note_write before ${change} on reprise.${table} for each row execute function public.note_write()`,
      ),
    ],
    count: "select last_value from public.written",
  },
  mysql: {
    statements: [
      "create table written (name varchar(20)) engine = MyISAM",
      ...OBSERVED.map(
        ([table, change]) =>
          `create trigger note_${table} before ${change} on reprise_${table} for each row insert into written values ('${table}')`,
      ),
    ],
    count: "select count(*) from written",
  },
};

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `a step that ${kind} has already`, () => {
    const open = async (url: string): Promise<Backend> =>
      kind === "postgres"
        ? openPostgresBackend({ url })
        : openMysqlBackend({ url, random: systemRandom, timers: systemTimers, durability: "full" });

    test("fails before anything else is written", { timeout: 120_000 }, async () => {
      await using database = await freshDatabase(kind);
      const other = await open(database.url);
      const connection = await other.connect();
      let interfere: (() => Promise<unknown>) | undefined;
      const backend = observed(await open(database.url), async () => {
        const act = interfere;
        interfere = undefined;
        await act?.();
      });
      const store = await openStore(backend, true);
      const held = await startGraph(store, await registerWorker(store), "a");
      const turn = turnWrite(store, held, fullStep(held));
      const [checkpoint] = turn.checkpoints!;
      const { seq, chain, key } = checkpoint!;
      const row: WireRow = { run: held.run, step: 1, seq, chain, key, label: null, state: null };
      const { statements, count } = COUNTERS[kind];
      await database.run(...statements);
      const written = async (): Promise<number> => Number((await runQuery(database.url, count))[0]);
      // Committed after the store has read that there is no such checkpoint, and before it inserts one.
      interfere = () => connection.commit(1, 0, [{ change: "insert", table: "checkpoints", rows: [row] }]);
      expect(await store.write([turn])).toEqual([{ status: "already_committed" }]);
      expect(interfere).toBeUndefined();
      expect(await written()).toBe(0);
      // The counters work: without that row, the step writes the run's row, three entries, an item, a chunk and a message.
      expect(await connection.commit(2, 0, [{ change: "delete", table: "checkpoints", rows: [row] }])).toBe(
        "committed",
      );
      expect(await store.write([turn])).toMatchObject([{ status: "committed" }]);
      expect(await written()).toBe(7);
      await connection.close();
      await other.close();
      await store.close();
    });
  });
