// Listen: hears that another process has made something due, on a connection of its own that is made again when it breaks.
// A hint and no more: whoever polls finds everything without it.

import type { Client } from "pg";
import type { Timers } from "../../base/index.ts";
import type { Address } from "./address.ts";
import { CLOSE_MS, connectClient, within, type Timeouts } from "./driver.ts";
import { quoted } from "./shapes.ts";

const AGAIN_MS = 1_000;

export interface ListenParts {
  readonly address: Address;
  readonly timeouts: Timeouts;
  readonly timers: Timers;
  readonly channel: string;
  /** What this process sends along: it does not listen to itself. */
  readonly own: string;
  readonly heard: (text: string) => void;
}

export class Listener {
  readonly #parts: ListenParts;
  #client: Client | undefined;
  #isClosed = false;
  #stop: (() => void) | undefined;

  constructor(parts: ListenParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { address, timeouts, timers, channel, own, heard } = this.#parts;
    try {
      const client = await connectClient(address, timeouts, "reprise listens");
      client.on("notification", ({ payload = "" }) => {
        const space = payload.indexOf(" ");
        if (payload.slice(0, space) !== own && !this.#isClosed) heard(payload.slice(space + 1));
      });
      client.once("end", () => this.#later());
      client.once("error", () => client.connection.stream.destroy());
      this.#client = client;
      if (this.#isClosed) await client.end();
      else await within(client, timers, timeouts.answerMs, () => client.query(`listen ${quoted(channel)}`));
    } catch {
      if (this.#client === undefined) this.#later();
      else this.#client.connection.stream.destroy();
    }
  }

  #later(): void {
    this.#client = undefined;
    if (this.#isClosed || this.#stop !== undefined) return;
    const { timers, heard } = this.#parts;
    this.#stop = timers.set(
      AGAIN_MS,
      () => {
        this.#stop = undefined;
        void this.start().then(() => {
          // What was sent in between is lost.
          if (!this.#isClosed) heard("");
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
