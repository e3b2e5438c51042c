// A proxy between peers and a home, by which a test cuts peers off and loses answers.

import { createServer, request as send, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class CuttableProxy {
  /** Where requests go. */
  target = "";
  readonly #cut = new Set<string>();
  /** How many more answers to ends get lost, by peer. */
  readonly #lost = new Map<string, number>();
  /** The answers to ends that the home gave, by peer. */
  readonly ends: { readonly peer: string; readonly body: string; readonly isLost: boolean }[] = [];
  readonly #server = createServer((request, response) => this.#forward(request, response));

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  /** The address for this peer. */
  urlFor(peer: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${peer}`;
  }

  cut(peer: string): void {
    this.#cut.add(peer);
  }
  join(peer: string): void {
    this.#cut.delete(peer);
  }
  /** The home gets the next end, and the peer gets no answer. */
  loseAnswer(peer: string): void {
    this.#lost.set(peer, (this.#lost.get(peer) ?? 0) + 1);
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const [, peer = "", path = ""] = /^\/([^/]+)(\/.*)$/.exec(request.url ?? "") ?? [];
    if (this.#cut.has(peer)) return void request.socket.destroy();
    // The home answers requests to its own name only.
    const { host: _, ...headers } = request.headers;
    const outgoing = send(`${this.target}${path}`, { method: "POST", headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", () => response.destroy());
      answer.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const lost = this.#lost.get(peer) ?? 0;
        const isEnd = path === "/offers/end";
        const isLost = this.#cut.has(peer) || (isEnd && lost > 0);
        if (isEnd) this.ends.push({ peer, body, isLost });
        if (isEnd && lost > 0) this.#lost.set(peer, lost - 1);
        if (isLost) return void response.destroy();
        response.writeHead(answer.statusCode ?? 500).end(body);
      });
    });
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    request.pipe(outgoing);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
