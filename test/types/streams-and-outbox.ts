// Programs with streams that must compile, and wrong ones that must not. Checked by `tsc`, never run.

import { createEngine, promise, stream, workflow } from "reprise";

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
  for await (const { offset, value } of run.stream("tokens", { after: 5 })) {
    const text: string = value.text;
    console.log(offset + 1, text);
  }
  for await (const { value } of engine.run("chat", "x").stream("progress")) console.log(value.toFixed());
  // @ts-expect-error no stream has this name
  run.stream("nobody");
  // @ts-expect-error a promise is not a stream
  run.stream("go");
  // @ts-expect-error an offset is a number
  run.stream("tokens", { after: "5" });
  // @ts-expect-error an option that is not there
  run.stream("tokens", { from: 5 });
  // @ts-expect-error this workflow has no streams
  engine.run(silent, "x").stream("tokens");
}
