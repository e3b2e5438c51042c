// reprise/client: the same calls on a client over HTTP and in the server's process have the same outcome.

import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import {
  createEngine,
  promise,
  query,
  queue,
  signal,
  stream,
  update,
  workflow,
  type Client,
  type Engine,
} from "reprise";
import { createHttpClient } from "reprise/client";
import { createServer, type Server } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";

const everything = {
  date: new Date(86_400_000),
  big: 12n ** 20n,
  map: new Map<unknown, unknown>([["a", new Set([1, 2])]]),
  bytes: new Uint8Array([0, 1, 254, 255]),
  none: undefined,
  nan: Number.NaN,
  $: "an escaped key",
};

const echo = workflow(
  "echo",
  {
    ports: {
      words: stream<unknown>(),
      ok: promise<{ ok: boolean }>(),
      note: signal<unknown>(),
      size: query<number, number>(),
      grow: update<number, number>(),
    },
  },
  async (ctx, input: unknown) => {
    let size = 1;
    ctx.onQuery("size", (by) => {
      if (by < 0) throw new RangeError("negative");
      return size * by;
    });
    ctx.onUpdate("grow", (by) => {
      if (by < 0) throw new TypeError("cannot shrink");
      return (size += by);
    });
    ctx.emit("words", input);
    await ctx.run("say", (op) => op.emit("words", "from a step"));
    if (input === "wait") {
      const note = await ctx.receive("note");
      ctx.emit("words", note);
      const decision = await ctx.promise("ok", { show: { what: "pay", at: new Date(5) }, timeout: "1 hour" });
      return { note, decision };
    }
    if (input === "fail") throw Object.assign(new RangeError("no stock"), { sku: 7n, cause: new Error("deep") });
    return { got: input };
  },
);

const mail = queue("mail", { concurrency: 3, rate: { limit: 10, per: "1 minute" } });
const mailed = workflow("mailed", { queue: mail }, async () => "sent");
const definitions = [echo, mailed] as const;

let engine: Engine<typeof echo | typeof mailed>;
let server: Server;
let listening: { readonly url: string; close(): Promise<void> };
let url: string;
let http: Client<typeof echo | typeof mailed>;

beforeAll(async () => {
  engine = await createEngine({ store: "sqlite::memory:", definitions, logger: false });
  server = createServer(engine);
  listening = await server.listen({ port: 0 });
  ({ url } = listening);
  http = createHttpClient({ url, definitions, retryFor: "5 s" });
  await engine.schedule("nightly", mailed, undefined, { cron: "0 3 * * *", timeZone: "Europe/Berlin" });
  const waiting = await engine.start(echo, "wait", { id: "waiting", tags: ["eu", "vip"] });
  await engine.start(echo, everything, { id: "everything" }).then((run) => run.result());
  await engine.start(echo, "fail", { id: "failed" }).then((run) => run.result().catch(() => undefined));
  await engine.start(echo, "other", { id: "other" }).then((run) => run.result());
  await waiting.query("size", 1);
});

afterAll(async () => {
  await http.close();
  await listening.close();
  await engine.close();
});

type AnyClient = Client<typeof echo | typeof mailed>;

/** What a call did: its result, or what it threw, as data. */
async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return { returned: await call() };
  } catch (error) {
    return { threw: described(error) };
  }
}

function described(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, cause, code, details, ...own } = error as Error & Record<string, unknown>;
  return { type: error.constructor.name, name, message, code, details, own, cause: cause && described(cause) };
}

/** A reason to wait says for how long. */
function withoutAges(outcome: any): unknown {
  const waitsFor = outcome.returned?.waitsFor?.map((one: object) => ({ ...one, text: "" }));
  return waitsFor === undefined ? outcome : { returned: { ...outcome.returned, waitsFor } };
}

const all = (items: AsyncIterable<unknown>): Promise<unknown[]> => Array.fromAsync(items);

/** Calls that read, and calls that are refused: each must have the same outcome on both clients. */
const SAME: Readonly<Record<string, (client: AnyClient) => Promise<unknown>>> = {
  "result of a completed run": (client) => client.get(echo, "everything").result(),
  "result of a failed run": (client) => client.get(echo, "failed").result(),
  "result that takes too long": (client) => client.get(echo, "waiting").result({ timeout: 20 }),
  "info of a waiting run": (client) => client.get(echo, "waiting").info(),
  "info of a failed run": (client) => client.get(echo, "failed").info(),
  "find nothing": (client) => client.find("nowhere"),
  find: (client) => client.find("everything"),
  list: (client) => all(client.list()),
  "list by filter": (client) => all(client.list({ status: ["waiting"], tag: ["eu", "vip"], createdAfter: "1 hour" })),
  "list with a limit": (client) => all(client.list({ limit: 2 })),
  "list behind a run": (client) => all(client.list({ after: "failed" })),
  "failed runs": (client) => all(client.list({ status: "failed", errorCode: "RangeError" })),
  journal: (client) => all(client.get(echo, "everything").journal()),
  "journal behind an entry": (client) => all(client.get(echo, "everything").journal({ after: 2 })),
  attempts: (client) => all(client.get(echo, "everything").attempts()),
  "stream of an ended run": (client) => all(client.get(echo, "everything").stream("words")),
  "stream behind an offset": (client) => all(client.get(echo, "everything").stream("words", { after: 1 })),
  "stream with a bad offset": async (client) => all(client.get(echo, "everything").stream("words", { after: -1 })),
  replay: (client) => client.get(echo, "everything").replay(),
  verify: (client) => client.get(echo, "failed").verify(),
  diff: (client) => client.get(echo, "everything").diff(client.get(echo, "other")),
  "checkpoints of a workflow": (client) => all(client.get(echo, "everything").checkpoints()),
  query: (client) => client.get(echo, "waiting").query("size", 3),
  "query that throws": (client) => client.get(echo, "waiting").query("size", -1),
  "update that throws": (client) => client.get(echo, "waiting").update("grow", -1),
  "unknown port": (client) => client.get(echo, "waiting").signal("none" as "note", 1),
  "signal to an ended run": (client) => client.get(echo, "everything").signal("note", 1),
  "start with another input": (client) => client.start(echo, "changed", { id: "everything" }),
  "retry of a run that did not fail": (client) => client.get(echo, "everything").retry(),
  "fork at an unknown command": (client) => client.get(echo, "everything").fork({ at: "Task(99)" }),
  queues: (client) => all(client.listQueues()),
  queue: (client) => client.findQueue(mail),
  "unknown queue": (client) => client.findQueue("none"),
  schedules: (client) => all(client.listSchedules()),
  schedule: (client) => client.getSchedule("nightly").info(),
  "unknown schedule": (client) => client.findSchedule("none"),
  promises: (client) => all(client.promises({ definition: "echo" })),
};

test.each(Object.keys(SAME))("%s", async (name) => {
  const call = SAME[name]!;
  const [here, there] = [await outcomeOf(() => call(engine)), await outcomeOf(() => call(http))];
  expect(withoutAges(there)).toEqual(withoutAges(here));
});

test("what does not exist has the same code, and the server's own next step", async () => {
  await expect(http.get(echo, "nowhere").result()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  await expect(http.getSchedule("none").info()).rejects.toMatchObject({ code: "SCHEDULE_NOT_FOUND" });
});

test("a name that would lead to another address is refused before a request is sent", async () => {
  await expect(http.get(echo, "..").cancel()).rejects.toMatchObject({ code: "BAD_ID" });
  await expect(http.getSchedule(".").trigger()).rejects.toMatchObject({ code: "BAD_ID" });
});

test("a run is started, followed, updated, queried, approved and finished over HTTP", async () => {
  const run = await http.start(echo, "wait", { id: "whole", tags: ["a"], signals: { note: everything } });
  expect(run.id).toBe("whole");
  const frames: unknown[] = [];
  const following = (async () => {
    for await (const frame of run.stream("words")) frames.push(frame);
  })();
  expect(await run.update("grow", 2)).toBe(3);
  expect(await run.query("size", 2)).toBe(6);
  const inbox = await Array.fromAsync(http.promises({ name: "ok" }));
  expect(inbox).toContainEqual(expect.objectContaining({ runId: "whole", show: { what: "pay", at: new Date(5) } }));
  await run.resolve("ok", { ok: true }, { by: "ann", reason: "seen" });
  expect(await run.result()).toEqual({ note: everything, decision: { ok: true } });
  await following;
  expect(frames).toEqual(await Array.fromAsync(engine.get(echo, "whole").stream("words")));
  expect(frames).toHaveLength(3);
});

test("a rejected promise throws the same error in the run's code", async () => {
  const run = await http.start(echo, "wait", { signals: { note: 1 } });
  expect(run.id).toMatch(/^[\da-f]{32}$/);
  await run.reject("ok", Object.assign(new RangeError("too expensive"), { limit: 5n }));
  await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { name: "RangeError", limit: 5n } });
});

test("runs are paused, resumed, canceled, terminated, forked, retried, deleted and bulked over HTTP", async () => {
  const run = await http.start(echo, "wait", { id: "controlled" });
  await run.pause();
  expect((await run.info()).status).toBe("paused");
  await run.resume();
  await run.cancel("no longer needed");
  await expect(run.result()).rejects.toThrow("Run controlled was cancelled: no longer needed");
  const second = await http.start(echo, "wait", { id: "controlled-2", tags: ["bulk"] });
  await second.terminate("gone");
  await expect(second.result()).rejects.toMatchObject({ name: "CancelledError", code: "CANCELLED" });
  await http.start(echo, "wait", { id: "controlled-3", tags: ["bulk"] });
  expect(await http.bulk("cancel", { tag: "bulk" })).toEqual({ count: 1, skipped: 1 });
  const fork = await http.get(echo, "everything").fork({ at: "Operation(0)", id: "forked" });
  expect(await fork.result()).toEqual({ got: everything });
  expect(await second.delete()).toEqual({ runs: 1 });
  await http.get(echo, "failed").retry();
  await expect(http.get(echo, "failed").result()).rejects.toThrow("no stock");
});

test("queues and schedules are controlled over HTTP, and what has no operation says so", async () => {
  await http.getQueue(mail).pause();
  expect(await http.findQueue(mail)).toMatchObject({ paused: true });
  await http.getQueue(mail).limit({ rate: { limit: 5, per: "10 s" } });
  expect((await http.findQueue(mail))?.limits).toEqual({ rate: { limit: 5, per: 10_000 } });
  await http.getQueue(mail).resume();
  const info = await http.getSchedule("nightly").trigger();
  expect(info.createdAt).toBeInstanceOf(Date);
  await http.getSchedule("nightly").remove();
  expect(await http.findSchedule("nightly")).toBeUndefined();
  await expect(http.prune({ olderThan: "1 day" })).rejects.toThrow("not available over HTTP");
  await expect(http.schedule("x", mailed, undefined, { cron: "@daily" })).rejects.toThrow("not available over HTTP");
});

test("an aborted signal ends every wait with its reason, and a closed client refuses calls", async () => {
  const run = http.get(echo, "waiting");
  const reason = new Error("left");
  const abort = new AbortController();
  const waits = [
    run.result({ signal: abort.signal }),
    run.stream("words", { after: 2, signal: abort.signal }).next(),
    http.start(echo, "x", { signal: abort.signal }),
    Array.fromAsync(http.list({}, { signal: abort.signal })),
  ];
  abort.abort(reason);
  for (const wait of waits) await expect(wait).rejects.toBe(reason);
  const closed = createHttpClient({ url, definitions });
  const left = closed.get(echo, "waiting").result();
  await closed.close();
  await expect(left).rejects.toMatchObject({ code: "ENGINE_CLOSED" });
  await expect(closed.find("waiting")).rejects.toMatchObject({ code: "ENGINE_CLOSED" });
});

test("a server that does not answer is repeated for a while and then named in the error", async () => {
  const none = createHttpClient({ url: "http://127.0.0.1:1", retryFor: "100 ms" });
  await expect(none.find("x")).rejects.toMatchObject({
    code: "SERVER_UNREACHABLE",
    message: expect.stringContaining("http://127.0.0.1:1"),
  });
});

test("types of definitions are enough, and wrong names and inputs do not compile", async () => {
  const typed = createHttpClient<typeof definitions>({ url });
  const run = typed.get("echo", "everything");
  expect(await run.result()).toEqual({ got: everything });
  // @ts-expect-error there is no such definition
  typed.get("nothing", "x");
  // @ts-expect-error a size is a number
  const wrong = (): Promise<unknown> => run.query("size", "one");
  expect(wrong).toBeTypeOf("function");
});

test("result and stream continue when the server restarts at the same address", async () => {
  const first = createServer(engine);
  const listener = await first.listen({ port: 0 });
  const { url: address } = listener;
  const client = createHttpClient({ url: address, definitions });
  const run = await client.start(echo, "wait", { id: "restarted" });
  const result = run.result();
  const frames = run.stream("words");
  expect(await frames.next()).toMatchObject({ value: { offset: 1 } });
  expect(await frames.next()).toMatchObject({ value: { offset: 2 } });
  const third = frames.next();
  await listener.close();
  await engine.get(echo, "restarted").signal("note", "while away");
  const second = createServer(engine);
  const again = await second.listen({ port: Number(new URL(address).port) });
  expect(await third).toMatchObject({ value: { offset: 3, value: "while away" } });
  await run.resolve("ok", { ok: true });
  expect(await result).toEqual({ note: "while away", decision: { ok: true } });
  expect(await frames.next()).toEqual({ done: true, value: undefined });
  await client.close();
  await again.close();
});

test("an answer that breaks off is asked for again, and only if that is harmless", async () => {
  let cut = 0;
  await using behind = createServer(engine);
  const proxy = createProxy(async (request, response) => {
    const answer = await behind.fetch(
      new Request(`http://127.0.0.1:7420${request.url}`, {
        method: request.method ?? "GET",
        headers: { "x-reprise": "1", "content-type": "application/json" },
        ...(request.method === "POST" && { body: "{}" }),
      }),
    );
    const bytes = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, { "content-type": "application/json", "content-length": bytes.length });
    if (request.method === "GET" && cut > 0) return void response.end(bytes);
    cut += 1;
    response.write(bytes.subarray(0, 10), () => response.destroy());
  });
  await using client = createHttpClient({ url: await proxy.url, definitions });
  await (await engine.start(echo, "cut off", { id: "cut-1" })).result();
  expect(await client.get(echo, "cut-1").result()).toEqual({ got: "cut off" });
  expect(cut).toBe(1);
  await (await engine.start(echo, "fail", { id: "cut-2" })).result().catch(() => undefined);
  await expect(client.get(echo, "cut-2").retry()).rejects.toMatchObject({ code: "SERVER_UNREACHABLE" });
  expect(cut).toBe(2);
  proxy.close();
});

test("an answer of another program is an error that says so, for requests and streams", async () => {
  const proxy = createProxy((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<h1>Sign in</h1>");
  });
  await using client = createHttpClient({ url: await proxy.url, definitions });
  const refused = { code: "SERVER_UNREACHABLE", message: expect.stringContaining("text/html") as string };
  await expect(client.get(echo, "any").result()).rejects.toMatchObject(refused);
  await expect(client.get(echo, "any").stream("words").next()).rejects.toMatchObject(refused);
  proxy.close();
});

function createProxy(answer: (...given: Parameters<RequestListener>) => void | Promise<void>): {
  readonly url: Promise<string>;
  close(): void;
} {
  const listening = createHttpServer((...given) => void answer(...given)).listen(0, "127.0.0.1");
  const url = once(listening, "listening").then(
    () => `http://127.0.0.1:${(listening.address() as { readonly port: number }).port}`,
  );
  return {
    url,
    close() {
      listening.close();
      listening.closeAllConnections();
    },
  };
}
