import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { runQuery } from "./run-query.ts";
import { describeOn, freshDatabase, isCommit, startProxy, type ProxyMessage } from "./index.ts";
import { wireOf } from "./wire/wire.ts";

const TIMEOUT = 120_000;

interface Session {
  query(statement: string): Promise<unknown>;
  /** With a prepared statement. */
  execute(statement: string): Promise<unknown>;
}

async function open(url: string): Promise<Session> {
  if (url.startsWith("mysql:")) {
    const connection = await createConnection({ uri: url, multipleStatements: true });
    onTestFinished(() => connection.destroy());
    connection.on("error", () => undefined);
    return { query: (statement) => connection.query(statement), execute: (statement) => connection.execute(statement) };
  }
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  onTestFinished(() => void client.end().catch(() => undefined));
  await client.connect();
  return {
    query: (statement) => client.query(statement),
    execute: (statement) => client.query({ name: statement, text: statement }),
  };
}

async function openTable(kind: "postgres" | "mysql") {
  const database = await freshDatabase(kind);
  onTestFinished(() => database[Symbol.asyncDispose]());
  await database.run("create table notes (body varchar(99))");
  const proxy = await startProxy(database.url);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return { database, proxy, bodies: () => runQuery(database.url, "select body from notes") };
}

/** The three ways in which a client commits a row. */
const COMMITS: Readonly<Record<string, (session: Session) => Promise<unknown>>> = {
  "a plain COMMIT": async (session) => {
    await session.query("begin");
    await session.query("insert into notes values ('once')");
    await session.query("commit");
  },
  "a prepared COMMIT": async (session) => {
    await session.query("begin");
    await session.execute("insert into notes values ('once')");
    await session.execute("commit");
  },
  "a COMMIT behind much else": (session) => {
    const much = "select body from notes; ".repeat(300);
    return session.query(`begin; insert into notes values ('once'); ${much} commit`);
  },
};

for (const kind of ["postgres", "mysql"] as const) {
  describeOn(kind, kind, () => {
    for (const [title, commit] of Object.entries(COMMITS)) {
      describe(title, () => {
        test("that is cut is not applied", { timeout: TIMEOUT }, async () => {
          const { proxy, bodies } = await openTable(kind);
          proxy.rule = (message) => (isCommit(message) ? "cut" : "pass");
          await expect(commit(await open(proxy.url))).rejects.toThrow();
          expect(proxy.counts.cut).toBe(1);
          expect(await bodies()).toEqual([]);
        });

        test("that stays unanswered is applied, and the client does not know", { timeout: TIMEOUT }, async () => {
          const { proxy, bodies } = await openTable(kind);
          proxy.rule = (message) => (isCommit(message) ? "unanswered" : "pass");
          await expect(commit(await open(proxy.url))).rejects.toThrow();
          expect(proxy.counts.unanswered).toBe(1);
          expect(await bodies()).toEqual(["once"]);
        });

        test("that is the last message is applied", { timeout: TIMEOUT }, async () => {
          const { proxy, bodies } = await openTable(kind);
          proxy.rule = (message) => (isCommit(message) ? "last" : "pass");
          await expect(commit(await open(proxy.url))).rejects.toThrow();
          await expect.poll(bodies).toEqual(["once"]);
        });
      });
    }

    test("messages pass unchanged, in whatever pieces they arrive", { timeout: TIMEOUT }, async () => {
      const { proxy } = await openTable(kind);
      const seen: ProxyMessage[] = [];
      proxy.rule = (message) => {
        seen.push(message);
        return "pass";
      };
      const session = await open(proxy.url);
      await session.query("insert into notes values (repeat('x', 90))");
      await session.query("insert into notes select body from notes; insert into notes select body from notes");
      await session.execute("select * from notes as a, notes as b, notes as c");
      await session.execute("select * from notes as a, notes as b, notes as c");
      await expect(session.query("select nonsense")).rejects.toThrow("nonsense");
      await session.query("select 1; select body from notes");

      const statements = seen.flatMap((message) => message.statement ?? []);
      expect(statements.filter((it) => it.startsWith("select * from notes as a"))).toHaveLength(2);
      const lastAnswer = seen.findLast((message) => message.to === "client")?.answer;
      expect(lastAnswer).toBe(seen.findLast((message) => message.to === "server")?.answer);

      const wire = wireOf(kind);
      const again = seen.flatMap(({ to, bytes }) =>
        Array.from(bytes, (byte) => {
          const piece = Buffer.of(byte);
          return to === "server" ? wire.toServer(piece) : wire.toClient(piece);
        }).flat(),
      );
      expect(again).toEqual(seen.map(({ to: _to, connection: _connection, ...frame }) => frame));
    });

    test("a hole is silent, and the connection stays open", { timeout: TIMEOUT }, async () => {
      const { proxy, bodies } = await openTable(kind);
      proxy.rule = (message) => (message.statement?.includes("notes") === true ? "hole" : "pass");
      const session = await open(proxy.url);
      let end = "none";
      const lost = session.query("insert into notes values ('lost')").then(
        () => (end = "answered"),
        () => (end = "reset"),
      );
      // A connection without the hole has a response by then.
      expect(await bodies()).toEqual([]);
      expect(end).toBe("none");
      proxy.cutAll();
      await lost;
      expect(end).toBe("reset");
      expect(await bodies()).toEqual([]);
    });

    test("delayed messages arrive in order", { timeout: TIMEOUT }, async () => {
      const { proxy, bodies } = await openTable(kind);
      let number = 0;
      proxy.rule = () => (number++ % 3 === 0 ? { delayMs: 5 } : "pass");
      const session = await open(proxy.url);
      for (const body of ["a", "b", "c"]) await session.execute(`insert into notes values ('${body}')`);
      expect(proxy.counts.delay).toBeGreaterThan(3);
      expect(await bodies()).toEqual(["a", "b", "c"]);
    });

    test("after all connections were cut, new ones are accepted", { timeout: TIMEOUT }, async () => {
      const { proxy } = await openTable(kind);
      const session = await open(proxy.url);
      proxy.cutAll();
      await expect(session.query("select 1")).rejects.toThrow();
      expect(await runQuery(proxy.url, "select 2")).toEqual([2]);
      expect(proxy.opened).toBe(2);
    });
  });
}
