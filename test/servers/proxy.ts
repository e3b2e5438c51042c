// Proxy: between a client and a database server; a rule decides the fate of every message. Messages are complete: what a rule
// cuts, the other side has received fully or not at all.
//
//   await using proxy = await startProxy(database.url);
//   proxy.rule = (message) => (isCommit(message) ? "unanswered" : "pass");
//
// proxy.P1. Messages of one direction arrive in order.
// proxy.P2. A hole is silent: neither side learns what the other does, not even that it has disconnected.

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { ServerKind } from "./kinds.ts";
import { wireOf, type Frame } from "./wire/wire.ts";

export interface ProxyMessage extends Frame {
  readonly to: "server" | "client";
  /** The number of the connection through this proxy, from 1. */
  readonly connection: number;
}

/**
 * "pass": it arrives. "cut": it does not arrive, and both sides are reset. "last": it arrives, and is the last that does.
 * "unanswered": it arrives, the client gets no response, and both sides are reset when the server has responded: the work
 * is done, and the client does not know. "hole": it and everything after it in this direction is dropped; the connection stays open.
 * `delayMs`: it arrives later, and so does everything after it.
 */
export type Fate = "pass" | "cut" | "last" | "unanswered" | "hole" | { readonly delayMs: number };

export type Rule = (message: ProxyMessage) => Fate;

export interface Proxy extends AsyncDisposable {
  /** The database's address through this proxy. */
  readonly url: string;
  /** May be changed at any time. Initially passes everything. */
  rule: Rule;
  /** The number of messages by fate. */
  readonly counts: Readonly<Record<"pass" | "cut" | "last" | "unanswered" | "hole" | "delay", number>>;
  /** The target of new connections; existing ones stay. */
  pointTo(url: string): void;
  /** The number of connections opened so far. */
  readonly opened: number;
  /** Resets every existing connection; new ones are accepted. */
  cutAll(): void;
}

/** Whether this message makes the server commit. */
export function isCommit(message: ProxyMessage): boolean {
  return message.to === "server" && /\bcommit\b/i.test(message.statement ?? "");
}

export async function startProxy(url: string): Promise<Proxy> {
  const proxy = new TcpProxy(url);
  await proxy.listen();
  return proxy;
}

class TcpProxy implements Proxy {
  rule: Rule = () => "pass";
  readonly counts = { pass: 0, cut: 0, last: 0, unanswered: 0, hole: 0, delay: 0 };
  opened = 0;

  #target: URL;
  readonly #listener: Server;
  readonly #connections = new Set<Connection>();

  constructor(url: string) {
    this.#target = new URL(url);
    // Without it, the last message of a side that half-closes could not be read.
    this.#listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  get url(): string {
    const through = new URL(this.#target);
    through.hostname = "127.0.0.1";
    through.port = String((this.#listener.address() as AddressInfo).port);
    return through.href;
  }

  async listen(): Promise<void> {
    this.#listener.listen(0, "127.0.0.1");
    await once(this.#listener, "listening");
  }

  pointTo(url: string): void {
    const { hostname, port } = new URL(url);
    this.#target.hostname = hostname;
    this.#target.port = port;
  }

  cutAll(): void {
    for (const connection of this.#connections) connection.reset();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#listener, "close");
    this.#listener.close();
    this.cutAll();
    await closed;
  }

  #accept(client: Socket): void {
    this.opened += 1;
    const number = this.opened;
    const server = connect({
      host: this.#target.hostname,
      port: Number(this.#target.port),
      allowHalfOpen: true,
      noDelay: true,
    });
    const kind: ServerKind = this.#target.protocol === "mysql:" ? "mysql" : "postgres";
    const judge = (to: "server" | "client", frame: Frame): Fate => {
      const fate = this.rule({ ...frame, to, connection: number });
      this.counts[typeof fate === "string" ? fate : "delay"] += 1;
      return fate;
    };
    const connection = new Connection(client, server, kind, judge, () => this.#connections.delete(connection));
    this.#connections.add(connection);
  }
}

type Judge = (to: "server" | "client", frame: Frame) => Fate;

/** One direction: delayed messages, and whether it is still open. */
interface Way {
  readonly to: "server" | "client";
  readonly target: Socket;
  readonly waiting: (Frame | "end")[];
  timer?: NodeJS.Timeout | undefined;
  isHole: boolean;
}

class Connection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #judge: Judge;
  #isOver = false;
  /** The response that ends this connection instead of arriving. */
  #lastAnswer: number | undefined;

  constructor(client: Socket, server: Socket, kind: ServerKind, judge: Judge, onEnd: () => void) {
    this.#client = client;
    this.#server = server;
    this.#judge = judge;
    const wire = wireOf(kind);
    this.#listen(client, { to: "server", target: server, waiting: [], isHole: false }, (bytes) => wire.toServer(bytes));
    this.#listen(server, { to: "client", target: client, waiting: [], isHole: false }, (bytes) => wire.toClient(bytes));
    for (const socket of [client, server]) {
      socket.on("close", () => {
        if (client.destroyed && server.destroyed) onEnd();
      });
    }
  }

  reset(): void {
    this.#isOver = true;
    this.#client.resetAndDestroy();
    this.#server.resetAndDestroy();
  }

  #listen(source: Socket, way: Way, framesOf: (bytes: Buffer) => readonly Frame[]): void {
    source.on("data", (bytes) => {
      if (this.#isOver) return;
      way.target.cork();
      for (const frame of framesOf(bytes)) this.#send(way, frame);
      way.target.uncork();
    });
    source.on("end", () => this.#send(way, "end"));
    source.on("error", () => {
      // A lost connection is reset on the other side, too, except through a hole.
      if (!way.isHole && !this.#isOver) this.reset();
    });
    source.on("close", () => clearTimeout(way.timer));
  }

  #send(way: Way, frame: Frame | "end"): void {
    if (this.#isOver || way.isHole) return;
    if (way.timer !== undefined) way.waiting.push(frame);
    else if (frame === "end") way.target.end();
    else if (way.to === "client" && this.#lastAnswer !== undefined) this.#swallow(frame, this.#lastAnswer);
    else this.#meet(way, frame, this.#judge(way.to, frame));
  }

  #swallow(frame: Frame, lastAnswer: number): void {
    if ((frame.answer ?? 0) >= lastAnswer) this.reset();
  }

  #meet(way: Way, frame: Frame, fate: Fate): void {
    switch (fate) {
      case "pass":
        way.target.write(frame.bytes);
        return;
      case "cut":
        this.reset();
        return;
      case "last":
        this.#sendLast(way, frame);
        return;
      case "unanswered":
        this.#lastAnswer = frame.answer ?? 0;
        way.target.write(frame.bytes);
        return;
      case "hole":
        way.isHole = true;
        return;
      default:
        this.#delay(way, frame, fate.delayMs);
    }
  }

  /** A reset could overtake a message that was just written: the receiver of the last message gets a clean end after it. */
  #sendLast(way: Way, frame: Frame): void {
    this.#isOver = true;
    const other = way.target === this.#client ? this.#server : this.#client;
    other.resetAndDestroy();
    way.target.once("end", () => way.target.destroy());
    way.target.end(frame.bytes);
  }

  #delay(way: Way, frame: Frame, delayMs: number): void {
    way.timer = setTimeout(() => {
      way.timer = undefined;
      if (this.#isOver) return;
      way.target.write(frame.bytes);
      for (const each of way.waiting.splice(0)) this.#send(way, each);
    }, delayMs);
  }
}
