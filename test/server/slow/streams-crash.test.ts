// Streams and SIGKILL: a worker dies in the middle of a stream, the server dies, and the reader comes back by its offset. It sees every
// frame once, in order, with a reset where the execution is repeated.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHttpClient } from "reprise/client";
import { afterAll, expect, test } from "vitest";
import { SseReader, type ReadEvent } from "../sse-reader.ts";
import { WORDS } from "./streams-definitions.ts";

const PROCESS = fileURLToPath(new URL("streams-process.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "reprise-crash-"));
const children: ChildProcess[] = [];

afterAll(async () => {
  await Promise.all(children.map(kill));
  rmSync(folder, { recursive: true });
});

async function start(...args: readonly string[]): Promise<{ readonly child: ChildProcess; readonly said: string }> {
  const child = fork(PROCESS, args, { execArgv: ["--conditions=reprise-source"] });
  children.push(child);
  const [said] = (await once(child, "message")) as [string];
  return { child, said };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Follows the stream like a browser: after every break it sends the id of the last event. */
class Follower {
  readonly frames: ReadEvent[] = [];
  breaks = 0;
  readonly ended: Promise<ReadEvent>;
  #waiting: { readonly test: () => boolean; readonly resolve: () => void }[] = [];

  constructor(url: string) {
    this.ended = this.#follow(url);
  }

  async #follow(url: string): Promise<ReadEvent> {
    for (;;) {
      try {
        const lastId = this.frames.at(-1)?.id;
        const headers = { accept: "text/event-stream", ...(lastId !== undefined && { "last-event-id": lastId }) };
        await using reader = new SseReader(await fetch(`${url}/v1/runs/tale/streams/words`, { headers }));
        for (let event = await reader.next(); event !== undefined; event = await reader.next()) {
          if (event.event === "end") return event;
          this.frames.push(event);
          this.#waiting = this.#waiting.filter(({ test: isDone, resolve }) => !(isDone() && (resolve(), true)));
        }
      } catch {
        // The server is gone for a moment.
      }
      this.breaks += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  until(isDone: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      if (isDone()) resolve();
      else this.#waiting.push({ test: isDone, resolve });
    });
  }
}

const isWord =
  (word: number, execution: number) =>
  ({ data }: ReadEvent): boolean =>
    data.value === word && data.execution === execution;

test("a reader sees every frame once although the worker and the server are killed", { timeout: 60_000 }, async () => {
  const store = `sqlite:${join(folder, "crash.db")}`;
  const first = await start("worker", store);
  const { child: server, said: url } = await start("server", store);
  const reader = new Follower(url);
  const client = createHttpClient({ url });
  const frames: unknown[] = [];
  const following = (async () => {
    for await (const frame of client.get<any>("tell", "tale").stream("words" as never)) frames.push(frame);
  })();
  // One message per word, sent when the word before was read.
  const say = async (worker: ChildProcess, from: number, to: number, execution: number): Promise<void> => {
    for (let word = from; word <= to; word += 1) {
      worker.send("next");
      await reader.until(() => reader.frames.some(isWord(word, execution)));
    }
  };
  await reader.until(() => reader.frames.length > 0);
  await say(first.child, 1, 7, 1);
  await kill(first.child);
  const second = await start("worker", store);
  await reader.until(() => reader.frames.some(({ event }) => event === "reset"));
  await say(second.child, 1, 5, 2);
  await kill(server);
  // While no server is there, the run continues.
  second.child.send("next");
  await start("server", store, new URL(url).port);
  await reader.until(() => reader.frames.some(isWord(6, 2)));
  await say(second.child, 7, WORDS, 2);
  expect((await reader.ended).data).toEqual({ status: "completed" });

  expect(reader.breaks).toBeGreaterThan(0);
  expect(reader.frames.map(({ id }) => Number(id))).toEqual(reader.frames.map((_, index) => index + 1));
  const words = (upTo: number): number[] => Array.from({ length: upTo }, (_, index) => index + 1);
  const seen = reader.frames.map(({ event, data }) => (event === "reset" ? `reset ${data.execution}` : data.value));
  expect(seen).toEqual([0, ...words(7), "reset 2", ...words(WORDS), -1]);
  await following;
  expect(frames.map((frame: any) => (frame.reset ? `reset ${frame.reset.execution}` : frame.value))).toEqual(seen);
  await client.close();
});
