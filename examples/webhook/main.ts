// A payment that another system confirms: the run hands out a URL, waits, and continues when the URL is called. A webhook reports the end.

import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { createEngine, promise, workflow } from "reprise";
import { callbackUrls, createServer } from "reprise/server";

const SECRET = "a secret of the server, 32 characters or more";
const WEBHOOK_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

export interface Provider {
  /** Starts a payment; the provider calls the URL when the money has arrived. */
  pay(cents: number, callback: string): Promise<string>;
}

export function payment(provider: Provider, callback: ReturnType<typeof callbackUrls>) {
  return workflow("payment", { ports: { paid: promise<{ cents: number }>() } }, async (ctx, cents: number) => {
    // The URL is the same every time: a repeated step asks for the same payment.
    await ctx.run("ask", () => provider.pay(cents, callback({ run: ctx.runId, port: "paid" })));
    const paid = await ctx.promise("paid", { timeout: "1 day" });
    return paid === undefined ? "not paid within a day" : `paid ${paid.cents}`;
  });
}

if (import.meta.main) {
  const reported = Promise.withResolvers<string>();
  // The outside world: takes payments, and gets the event of the end.
  const take = async (request: IncomingMessage): Promise<void> => {
    const { type, data, cents, callback } = JSON.parse(await textOf(request)) as {
      type?: string;
      data?: { run: string };
      cents?: number;
      callback?: string;
    };
    if (callback === undefined) return reported.resolve(`${type} ${data?.run}`);
    const headers = { "content-type": "application/json" };
    await fetch(callback, { method: "POST", headers, body: JSON.stringify({ cents }) });
  };
  const outside = createHttpServer((request, response) => {
    void take(request);
    request.once("end", () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve) => outside.listen(0, "127.0.0.1", resolve));
  const provider = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`;

  const port = 7420 + (process.pid % 1_000);
  const definition = payment(
    { pay: async (cents, callback) => String((await post(provider, { cents, callback })).status) },
    callbackUrls({ origin: `http://127.0.0.1:${port}`, secret: SECRET }),
  );
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [definition],
    webhooks: [{ url: provider, secret: WEBHOOK_SECRET, events: ["run.ended", "run.failed"] }],
  });
  await using server = createServer(engine, { secret: SECRET });
  const listener = await server.listen({ port });
  const run = await engine.start(definition, 4_990, { id: "payment-1" });
  console.log(await run.result());
  console.log(await reported.promise);
  outside.closeAllConnections();
  outside.close();
  await listener.close();
}

function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, { method: "POST", body: JSON.stringify(body) });
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
