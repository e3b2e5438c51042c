// The run of the crash test of streams: an operation that emits a word when its process gets a message.

import { stream, workflow } from "reprise";

export const WORDS = 20;

// The test sends one message per word, so it decides where a process dies. A message may come before the operation waits for it.
let messages = 0;
let wake = (): void => undefined;
process.on("message", () => {
  messages += 1;
  wake();
});

async function nextTurn(): Promise<void> {
  while (messages === 0) await new Promise<void>((resolve) => void (wake = resolve));
  messages -= 1;
}

export const tell = workflow("tell", { ports: { words: stream<number>() } }, async (ctx) => {
  ctx.emit("words", 0);
  await ctx.run("tell", async (op) => {
    for (let word = 1; word <= WORDS; word += 1) {
      await nextTurn();
      await op.emit("words", word);
    }
  });
  ctx.emit("words", -1);
});
