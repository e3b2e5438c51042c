// Dev server: the dashboard of `reprise dev`, at one address while the worker restarts.
//
// dev-server.V1. The parent listens and passes each connection to the worker that is ready. So the port stays the same over restarts, and
//   the worker answers with the code that it executes.
// dev-server.V2. While a worker starts, connections wait. If none starts soon, because its file cannot be loaded or a signal killed it
//   repeatedly, the parent answers them itself, and says so. It closes them when a worker is ready, so that clients connect to that one.

import type { ChildProcess } from "node:child_process";
import {
  createServer as createSocketServer,
  type AddressInfo,
  type Server as SocketServer,
  type Socket,
} from "node:net";
import { RepriseError } from "../base/index.ts";
import { announceDashboard, CONNECTION, devAccess, type DevMessage } from "./dev-protocol.ts";
import type { GlobalOptions } from "./global-options.ts";
import type { LogLines } from "./log-lines.ts";
import { payloadOptions } from "./payload-module.ts";

export class DevServer {
  readonly port: number;
  readonly #server: SocketServer;
  readonly #options: GlobalOptions;
  readonly #log: LogLines;
  readonly #file: string;
  readonly #waiting: Socket[] = [];
  #child: ChildProcess | undefined;
  /** Why no worker takes connections; of the worker that has not exited yet, `#loadFailure`. */
  #failure: string | undefined;
  #loadFailure: string | undefined;
  #isAnnounced = false;
  #own: Promise<{ accept(socket: Socket): void; close(): Promise<void> }> | undefined;

  private constructor(server: SocketServer, file: string, options: GlobalOptions, log: LogLines) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.#file = file;
    this.#options = options;
    this.#log = log;
    server.on("connection", (socket) => this.#route(socket));
  }

  /** Listens on the port; on a free one if it is taken and was not asked for. */
  static async open(
    port: number,
    isChosen: boolean,
    file: string,
    options: GlobalOptions,
    log: LogLines,
  ): Promise<DevServer> {
    const server = createSocketServer({ pauseOnConnect: true });
    try {
      await listenOn(server, port);
    } catch (cause) {
      if (isChosen)
        throw new RepriseError(
          "USAGE",
          `dev: cannot listen on port ${port}: ${(cause as Error).message}. Pass another --port.`,
          {
            cause,
          },
        );
      await listenOn(server, 0);
    }
    return new DevServer(server, file, options, log);
  }

  /** Whether the worker that starts next prints the address. */
  get announces(): boolean {
    return !this.#isAnnounced;
  }

  /** What a worker says about itself. */
  onMessage(child: ChildProcess, { ready, failed }: DevMessage): void {
    if (failed !== undefined) this.#loadFailure = failed;
    if (ready !== true) return;
    this.#failure = undefined;
    this.#child = child;
    this.#isAnnounced = true;
    this.#flush();
    const own = this.#own;
    this.#own = undefined;
    void own?.then((server) => server.close()).catch(() => undefined);
  }

  /** The worker drains, or has ended: it gets no further connections. */
  release(): void {
    this.#child = undefined;
  }

  /** No worker starts soon (dev-server.V2). */
  async onEnded(reason: string): Promise<void> {
    this.release();
    this.#failure = this.#loadFailure ?? reason;
    this.#loadFailure = undefined;
    const own = await this.#openOwn();
    this.#flush();
    if (this.#isAnnounced || own === undefined) return;
    this.#isAnnounced = true;
  }

  #route(socket: Socket): void {
    if (this.#child?.connected === true) this.#child.send(CONNECTION, socket, () => undefined);
    else if (this.#failure !== undefined)
      void this.#openOwn().then((own) => (this.#failure === undefined ? this.#route(socket) : own?.accept(socket)));
    else {
      socket.on("error", () => undefined);
      this.#waiting.push(socket);
    }
  }

  #flush(): void {
    for (const socket of this.#waiting.splice(0)) this.#route(socket);
  }

  async #openOwn(): Promise<{ accept(socket: Socket): void } | undefined> {
    this.#own ??= this.#serveOwn();
    try {
      return await this.#own;
    } catch (error) {
      this.#own = undefined;
      this.#log.error(`dev: the dashboard cannot answer: ${(error as Error).message}`, {});
      return undefined;
    }
  }

  async #serveOwn(): Promise<{ accept(socket: Socket): void; close(): Promise<void> }> {
    const [{ createServer }, { createClient }] = await Promise.all([
      import("../server/index.ts"),
      import("../engine/index.ts"),
    ]);
    const client = await createClient({
      store: this.#options.store,
      definitions: [],
      logger: false,
      ...payloadOptions(),
    });
    const server = createServer(client, {
      ...devAccess(this.#options),
      logger: this.#log,
      notices: () =>
        this.#failure === undefined ? [] : [{ tone: "bad", text: `${this.#file} is not executed: ${this.#failure}` }],
    });
    let accept: ((socket: Socket) => void) | undefined;
    const listener = await server.listen({ port: this.port, sockets: (given) => (accept = given) });
    if (!this.#isAnnounced) announceDashboard(this.#log, listener.url, server.signInAddress());
    return {
      accept: (socket) => accept?.(socket),
      close: async () => {
        await listener.close();
        await client.close();
      },
    };
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#waiting.splice(0)) socket.destroy();
    await (await this.#own?.catch(() => undefined))?.close();
  }
}

function listenOn(server: SocketServer, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}
