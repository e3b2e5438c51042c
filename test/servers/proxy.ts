// Stands between a client and a database server, and decides the fate of every message. Whole messages: what a rule
// cuts, the other side has either all of or none of.
//
//   await using proxy = await startProxy(database.url);
//   proxy.rule = (message) => (isCommit(message) ? "unanswered" : "pass");
//
// P1. Messages of one direction arrive in their order, whatever becomes of them.
// P2. A hole is silent: neither side hears of what the other does, not even that it is gone.

import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { ServerKind } from "./kinds.ts";
import { wireOf, type Frame } from "./wire/wire.ts";

export interface ProxyMessage extends Frame {
  readonly to: "server" | "client";
  /** Which connection through this proxy, counted from 1. */
  readonly connection: number;
}

/**
 * "pass": it arrives. "cut": it does not arrive, and both sides are reset. "last": it arrives, and is the last that does.
 * "unanswered": it arrives, the client hears nothing more, and both sides are reset when the server has answered: the work
 * is done, and the client does not know. "hole": it and all that follows in this direction vanish, while the connection stays.
 * `delayMs`: it arrives later, and so does all that follows.
 */
export type Fate = "pass" | "cut" | "last" | "unanswered" | "hole" | { readonly delayMs: number };

export type Rule = (message: ProxyMessage) => Fate;

export interface Proxy extends AsyncDisposable {
  /** The database's address, by way of this proxy. */
  readonly url: string;
  /** May be changed at any time. Passes everything at first. */
  rule: Rule;
  /** How many messages met each fate. */
  readonly counts: Readonly<Record<"pass" | "cut" | "last" | "unanswered" | "hole" | "delay", number>>;
  /** Where new connections are led from now on; those there are stay where they are. */
  pointTo(url: string): void;
  /** How many connections were opened so far. */
  readonly opened: number;
  /** Resets every connection there is; new ones are served. */
  cutAll(): void;
}

/** Whether the server shall commit because of this message. */
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
    // Without it a side that says its last word could not be heard to the end.
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

/** One direction: what waits behind a delay, and whether anything still arrives. */
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
  /** The answer that ends this connection instead of arriving. */
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
      // A lost connection is lost for the other side, too; unless nothing reaches it.
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

  /** A reset could overtake what was just written: whoever gets the last word gets an orderly end behind it. */
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
