// A receiver of webhooks: a real HTTP server that records what arrives and answers as the test says.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { webhookKeyOf, webhookRefusal } from "../../src/base/index.ts";
import type { WebhookBody } from "reprise";

export const SECRET = "whsec_" + Buffer.alloc(32, 7).toString("base64");
export const NEXT_SECRET = "whsec_" + Buffer.alloc(32, 8).toString("base64");

export interface Delivery {
  readonly id: string;
  readonly body: WebhookBody;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

/** A status, with headers; or what the test does with the response. */
export type Reply = number | { readonly status: number; readonly headers: Record<string, string> } | "never";

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly deliveries: Delivery[];
  /** Resolves with the first deliveries, when there are so many. */
  got(count: number): Promise<readonly Delivery[]>;
}

/** Why a delivery is refused under this secret. */
export function refusalOf({ headers, bytes }: Delivery, secret = SECRET): string | undefined {
  return webhookRefusal([webhookKeyOf(secret, "secret")], headers, bytes, Date.now());
}

export async function startReceiver(
  reply: (n: number, delivery: Delivery) => Reply = () => 204,
  port = 0,
): Promise<Receiver> {
  const deliveries: Delivery[] = [];
  const waiters: { readonly count: number; readonly resolve: () => void }[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const headers = new Headers(
      Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const body = JSON.parse(bytes.toString()) as WebhookBody;
    const delivery = { id: headers.get("webhook-id") ?? "", body, headers, bytes };
    const answer = reply(deliveries.push(delivery) - 1, delivery);
    if (answer !== "never") {
      const { status, headers: fields = {} } = typeof answer === "number" ? { status: answer } : answer;
      response.writeHead(status, fields).end();
    }
    for (const { count, resolve } of waiters) if (deliveries.length >= count) resolve();
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/events`,
    port: address.port,
    deliveries,
    async got(count) {
      if (deliveries.length < count) await new Promise<void>((resolve) => waiters.push({ count, resolve }));
      return deliveries.slice(0, count);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
