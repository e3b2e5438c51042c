// What a listening server does with requests that a program of another language sends, and with the bytes of its answers.

import { request } from "node:http";
import { createEngine, workflow, type Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";

const hello = workflow("hello", async (_ctx, name: string) => `Hello, ${name}`);
let engine: Engine<typeof hello>;
let server: Server;
let url: string;

beforeAll(async () => {
  engine = await createEngine({ store: "sqlite::memory:", definitions: [hello], logger: false });
  server = createServer(engine);
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  await server.close();
  await engine.close();
});

interface Answered {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function send(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, headers: { "x-reprise": "1", ...headers } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    sent.once("error", reject).end(body);
  });
}

test("a method that no path allows gets 405 with the methods of its path, TRACE as every other one", async () => {
  for (const method of ["TRACE", "PATCH", "PROPFIND"]) {
    const { status, headers, text } = await send(method, "/v1/definitions/hello/runs", { accept: "application/json" });
    expect([status, headers["allow"]], method).toEqual([405, "POST"]);
    expect(JSON.parse(text)).toMatchObject({ status: 405, code: "USAGE" });
  }
});

test("a request whose length is 0 has no body, and needs no content type", async () => {
  await engine.schedule("nightly", hello, "world", { cron: "0 3 * * *" });
  expect((await send("DELETE", "/v1/schedules/nightly", { "content-length": "0" })).status).toBe(204);
});

test("an answer of known size carries its length, a refusal too, and a repeated one", async () => {
  const start = { "content-type": "application/json", "idempotency-key": "k-1" };
  const answers = [
    await send("GET", "/v1/definitions"),
    await send("GET", "/openapi.json"),
    await send("GET", "/metrics"),
    await send("GET", "/v1/runs/näh"),
    await send("POST", "/v1/definitions/hello/runs", start, '{"input":"wörld"}'),
    await send("POST", "/v1/definitions/hello/runs", start, '{"input":"wörld"}'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 404, 201, 201]);
  for (const { headers, text } of answers) expect(headers["content-length"]).toBe(String(Buffer.byteLength(text)));
  expect(answers[5]!.headers["idempotent-replayed"]).toBe("true");
  expect(answers[5]!.text).toBe(answers[4]!.text);
});
