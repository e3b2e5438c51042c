// serveMcp over streams of this process: order of answers, cancellation, and the end of the input.

import { PassThrough } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../engine/world.ts";
import { createEngine, promise, workflow, type Engine } from "reprise";
import { serveMcp, type McpOptions } from "reprise/server";

const waiting = workflow("waiting", { ports: { go: promise<string>() } }, async (ctx) => ctx.promise("go"));
let engine: Engine<typeof waiting>;

beforeAll(async () => {
  engine = await createEngine({ store: "sqlite::memory:", definitions: [waiting], logger: false });
});
afterAll(() => engine.close());

interface Session {
  readonly send: (message: object) => void;
  /** Messages that the server has sent. */
  readonly answers: { readonly id: unknown; readonly result?: any; readonly error?: any }[];
  readonly end: () => Promise<void>;
}

function open(options: McpOptions = {}): Session {
  const input = new PassThrough();
  const answers: Session["answers"] = [];
  const output = {
    write: (text: string, done: (error?: Error | null) => void): void => {
      answers.push(JSON.parse(text) as Session["answers"][number]);
      done();
    },
  };
  const ended = serveMcp(engine, { ...options, input, output });
  return {
    send: (message) => void input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
    answers,
    end: async () => {
      input.end();
      await ended;
    },
  };
}

const call = (id: number, name: string, args: object = {}): object => ({
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

test("a call that waits holds up no other, and a canceled one gets no answer", async () => {
  const session = open({ allow: ["waiting", "promise_resolve"] });
  session.send(call(1, "start_waiting", { id: "waiting-1" }));
  session.send(call(2, "start_waiting", { id: "waiting-2" }));
  session.send({ id: 3, method: "ping" });
  await until(() => session.answers.some(({ id }) => id === 3));
  expect(session.answers.map(({ id }) => id)).toEqual([3]);
  // The id of a request that is open cannot be used for another.
  session.send({ id: 1, method: "ping" });
  await until(() => session.answers.some(({ id, error }) => id === 1 && error?.code === -32_600));
  session.send({ method: "notifications/cancelled", params: { requestId: 2 } });
  await until(async () => (await engine.find("waiting-1"))?.status === "waiting");
  session.send(call(4, "promise_resolve", { run: "waiting-1", port: "go", value: "now" }));
  await until(() => session.answers.some(({ id, result }) => id === 1 && result !== undefined));
  const { result } = session.answers.find(({ id, result: has }) => id === 1 && has !== undefined)!;
  expect(JSON.parse(result.content[0].text)).toEqual({ run: "waiting-1", status: "completed", output: "now" });
  await session.end();
  expect(session.answers.some(({ id }) => id === 2)).toBe(false);
  // Canceling a call does not cancel the run.
  expect((await engine.find("waiting-2"))?.status).toBe("waiting");
});

test("requests that came before the end of the input are answered", async () => {
  const session = open();
  session.send(call(1, "runs_list"));
  session.send(call(2, "search_docs", { query: "webhook" }));
  await session.end();
  expect(session.answers.map(({ id }) => id).toSorted()).toEqual([1, 2]);
});

test("no more than 64 requests are open at a time, and a batch has no more messages", async () => {
  const session = open({ allow: "all" });
  for (let id = 0; id < 70; id++) session.send(call(id, "start_waiting", { id: "waiting-3" }));
  session.send({ id: 99, method: "ping" });
  await until(() => session.answers.some(({ id }) => id === 99));
  expect(session.answers.filter(({ error }) => error?.code === -32_600)).toHaveLength(7);
  await engine.get(waiting, "waiting-3").resolve("go", "x");
  await session.end();
  expect(session.answers.filter(({ result }) => result !== undefined)).toHaveLength(64);
});
