// Programs with streams, transactions and messages that must compile, and wrong ones that must not. Checked by `tsc`, never run.

import { createEngine, promise, stream, workflow, type Database } from "reprise";
import { sqlite } from "reprise/sqlite";

interface Token {
  readonly text: string;
}

export const chat = workflow(
  "chat",
  { ports: { tokens: stream<Token>(), progress: stream<number>(), go: promise() } },
  async (ctx, prompt: string) => {
    ctx.emit("progress", 0);
    const length = await ctx.run("model", async ({ emit }) => {
      emit("tokens", { text: "Hello" });
      return 5;
    });
    await ctx.run("with input", { prompt }, (op, input) => op.emit("tokens", { text: input.prompt }));
    // @ts-expect-error no stream has this name
    ctx.emit("tokns", { text: "x" });
    // @ts-expect-error a promise is not a stream
    ctx.emit("go", undefined);
    // @ts-expect-error the chunk has the wrong type
    ctx.emit("progress", "half");
    // @ts-expect-error a chunk is needed
    ctx.emit("progress");
    // @ts-expect-error the chunk has the wrong type, in an operation too
    await ctx.run("wrong", (op) => op.emit("tokens", "Hello"));
    // @ts-expect-error no stream has this name, in an operation too
    await ctx.run("unknown", (op) => op.emit("nobody", 1));
    return length;
  },
);

export const silent = workflow("silent", async (ctx) => {
  // @ts-expect-error a workflow without streams emits nothing
  ctx.emit("tokens", 1);
});

export async function readers(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [chat, silent] });
  const run = await engine.start(chat, "hi");
  for await (const { offset, value, step, execution, reset } of run.stream("tokens", { after: 5 })) {
    if (reset) {
      const repeated: { readonly step: string; readonly execution: number } = reset;
      console.log(offset + 1, repeated);
      continue;
    }
    const text: string = value.text;
    const from: string | undefined = step;
    const times: number | undefined = execution;
    console.log(offset + 1, text, from, times);
  }
  for await (const chunk of engine.get("chat", "x").stream("progress"))
    console.log(chunk.reset ? chunk.reset.step : chunk.value.toFixed());
  // @ts-expect-error a reset has no value
  for await (const { value } of engine.get("chat", "x").stream("progress")) console.log(value.toFixed());
  // @ts-expect-error no stream has this name
  run.stream("nobody");
  // @ts-expect-error a promise is not a stream
  run.stream("go");
  // @ts-expect-error an offset is a number
  run.stream("tokens", { after: "5" });
  // @ts-expect-error an option that is not there
  run.stream("tokens", { from: 5 });
  // @ts-expect-error this workflow has no streams
  engine.get(silent, "x").stream("tokens");
}

// ── ctx.tx ──

declare const server: Database<{ query(sql: string): Promise<number[]> }, false>;

export const books = workflow("books", async (ctx, id: number) => {
  const count = await ctx.tx("count", sqlite, (db) => Number(db.prepare("select 1 as n").get(id)?.["n"]));
  const sum: number = count + 1;
  const nothing: void = await ctx.tx("create", sqlite, (db) => db.exec("create table t (a)"));
  const rows: number[] = await ctx.tx("server", server, async (db) => db.query("select 1"));
  // @ts-expect-error on SQLite the function is not async
  await ctx.tx("async", sqlite, async (db) => db.exec("select 1"));
  // @ts-expect-error the handle has no such method
  await ctx.tx("close", sqlite, (db) => db.close());
  // @ts-expect-error a function is not data
  await ctx.tx("function", sqlite, () => () => 1);
  // @ts-expect-error a store is not a database to name
  await ctx.tx("store", sqlite("x.db"), () => 1);
  // @ts-expect-error a function is needed
  await ctx.tx("nothing", sqlite);
  // @ts-expect-error a name is needed
  await ctx.tx(sqlite, () => 1);
  return { sum, nothing, rows };
});

// ── ctx.send ──

export const sender = workflow("sender", async (ctx) => {
  ctx.send("mail", { to: "ann" });
  ctx.send("ping");
  // @ts-expect-error a destination is needed
  ctx.send();
  // @ts-expect-error a destination is a name
  ctx.send({ to: "ann" }, "mail");
  // @ts-expect-error there is nothing to wait for
  await ctx.send("mail", 1).then(() => 1);
});

export async function outboxes(): Promise<void> {
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [sender],
    outbox: {
      async mail(payload, dedupKey) {
        const key: string = dedupKey;
        // @ts-expect-error what a message holds is not known here
        console.log(key, payload.to);
      },
      ping: () => {},
    },
  });
  console.log(engine);
  void createEngine({
    store: "sqlite::memory:",
    definitions: [sender],
    // @ts-expect-error a handler is a function
    outbox: { mail: "smtp://localhost" },
  });
}
