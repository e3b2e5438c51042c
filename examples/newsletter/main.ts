// One issue of a newsletter: subscribers in a table of our own, progress as a stream, and one mail per subscriber that is
// sent if and only if the database records it.

import { createEngine, stream, workflow } from "reprise";
import { sqlite } from "reprise/sqlite";

export interface Issue {
  readonly number: number;
  readonly title: string;
}

export const newsletter = workflow(
  "newsletter",
  { ports: { progress: stream<string>() } },
  async (ctx, issue: Issue) => {
    // Our own SQL in the transaction of the journal entry: it is applied exactly once, also after crashes.
    const subscribers = await ctx.tx("take subscribers", sqlite, (db) => {
      db.exec("create table if not exists subscribers (mail text primary key, got integer not null default 0)");
      for (const mail of ["ann@example.org", "bob@example.org", "eve@example.org"])
        db.prepare("insert into subscribers (mail) values (?) on conflict do nothing").run(mail);
      return db
        .prepare("select mail from subscribers where got < ? order by mail")
        .all(issue.number)
        .map((row) => String(row["mail"]));
    });
    ctx.emit("progress", `issue ${issue.number} goes to ${subscribers.length}`);

    for (const mail of subscribers) {
      const text = await ctx.run("render", { mail }, (op, { mail: to }) => {
        op.emit("progress", `writing to ${to}`);
        return `Dear ${to}: ${issue.title}`;
      });
      await ctx.tx("note", sqlite, (db) => {
        db.prepare("update subscribers set got = ? where mail = ?").run(issue.number, mail);
      });
      // Written with the commit of this step; delivered at least once, with a key by which the receiver recognizes it.
      ctx.send("mail", { to: mail, text });
    }
    ctx.emit("progress", "done");
    return ctx.tx("count", sqlite, (db) =>
      Number(db.prepare("select count(*) as n from subscribers where got = ?").get(issue.number)?.["n"]),
    );
  },
);

/** A mail server that ignores a repeated message: the key is the same every time. */
export function createMailServer(): {
  readonly sent: ReadonlyMap<string, unknown>;
  readonly send: (payload: unknown, dedupKey: string) => Promise<void>;
} {
  const sent = new Map<string, unknown>();
  return {
    sent,
    async send(payload, dedupKey) {
      if (!sent.has(dedupKey)) sent.set(dedupKey, payload);
    },
  };
}

if (import.meta.main) {
  const server = createMailServer();
  {
    await using engine = await createEngine({
      store: "sqlite::memory:",
      definitions: [newsletter],
      outbox: { mail: server.send },
    });
    const run = await engine.start(newsletter, { number: 7, title: "Durable letters" }, { id: "issue-7" });
    for await (const { offset, value } of run.stream("progress")) console.log(offset, value);
    console.log(`${await run.result()} subscribers have issue 7`);
    while (server.sent.size < 3) await new Promise((resolve) => setImmediate(resolve));
  }
  for (const mail of server.sent.values()) console.log(mail);
}
