// Listener: receives notifications of other processes (LISTEN) on its own connection, and reconnects when it breaks.
// Notifications are hints: polling finds everything without them.

import type { Client } from "pg";
import type { Timers } from "../../base/index.ts";
import type { Address } from "./address.ts";
import { CLOSE_MS, connectClient, within, type Timeouts } from "./driver.ts";
import { quoted } from "./shapes.ts";

const RECONNECT_MS = 1_000;

export interface ListenerOptions {
  readonly address: Address;
  readonly timeouts: Timeouts;
  readonly timers: Timers;
  readonly channel: string;
  /** The token of this process in its own notifications, which it ignores. */
  readonly own: string;
  readonly onNotify: (text: string) => void;
}

export class Listener {
  readonly #parts: ListenerOptions;
  #client: Client | undefined;
  #isClosed = false;
  #stop: (() => void) | undefined;

  constructor(parts: ListenerOptions) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { address, timeouts, timers, channel, own, onNotify } = this.#parts;
    try {
      const client = await connectClient(address, timeouts, "reprise listens");
      client.on("notification", ({ payload = "" }) => {
        const space = payload.indexOf(" ");
        if (payload.slice(0, space) !== own && !this.#isClosed) onNotify(payload.slice(space + 1));
      });
      client.once("end", () => this.#reconnectLater());
      client.once("error", () => client.connection.stream.destroy());
      this.#client = client;
      if (this.#isClosed) await client.end();
      else await within(client, timers, timeouts.answerMs, () => client.query(`listen ${quoted(channel)}`));
    } catch {
      if (this.#client === undefined) this.#reconnectLater();
      else this.#client.connection.stream.destroy();
    }
  }

  #reconnectLater(): void {
    this.#client = undefined;
    if (this.#isClosed || this.#stop !== undefined) return;
    const { timers, onNotify } = this.#parts;
    this.#stop = timers.set(
      RECONNECT_MS,
      () => {
        this.#stop = undefined;
        void this.start().then(() => {
          // Notifications sent in between are lost.
          if (!this.#isClosed) onNotify("");
        });
      },
      { ref: false },
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop?.();
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) await within(client, this.#parts.timers, CLOSE_MS, () => client.end());
  }
}
