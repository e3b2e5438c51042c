// PostgreSQL's protocol, version 3: a letter, a length, a body. A response ends with "Z", which follows each "Q" and "S".

import { Collector } from "./collector.ts";
import type { Frame, Wire } from "./wire.ts";

const OLDEST_PROTOCOL = 3 << 16;
/** Requests before authentication; the response is one letter without a length. */
const ASKS_FOR_ENCRYPTION = new Set([80_877_103, 80_877_104]);

export class PostgresWire implements Wire {
  readonly #fromClient = new Collector();
  readonly #fromServer = new Collector();
  readonly #statements = new Map<string, string>();
  readonly #portals = new Map<string, string | undefined>();
  #isGreeting = true;
  #letters = 0;
  #asked = 0;
  #answered = 0;

  toServer(bytes: Buffer): readonly Frame[] {
    return Array.from(
      this.#fromClient.take(bytes, (rest) => sizeAt(rest, this.#isGreeting ? 0 : 1)),
      (frame) => (this.#isGreeting ? this.#greeting(frame) : this.#message(frame)),
    );
  }

  toClient(bytes: Buffer): readonly Frame[] {
    const sizeOf = (rest: Buffer): number | undefined => (this.#letters > 0 && rest.length > 0 ? 1 : sizeAt(rest, 1));
    return Array.from(this.#fromServer.take(bytes, sizeOf), (frame) => {
      if (this.#letters > 0) this.#letters -= 1;
      const type = letterOf(frame);
      if (type === "Z") this.#answered += 1;
      return { bytes: frame, type, answer: type === "Z" ? this.#answered : undefined };
    });
  }

  /** The startup messages, before the first letter. The first "Z" answers all of them. */
  #greeting(bytes: Buffer): Frame {
    const code = bytes.readInt32BE(4);
    if (ASKS_FOR_ENCRYPTION.has(code)) this.#letters += 1;
    if (code >= OLDEST_PROTOCOL && code < OLDEST_PROTOCOL + 0xffff) {
      this.#isGreeting = false;
      this.#asked = 1;
    }
    return { bytes, type: "", answer: 1 };
  }

  #message(bytes: Buffer): Frame {
    const type = letterOf(bytes);
    const [first = "", second = ""] = bytes.toString("utf8", 5).split("\0", 2);
    if (type === "P") this.#statements.set(first, second);
    if (type === "B") this.#portals.set(first, this.#statements.get(second));
    const statement = type === "Q" ? first : type === "E" ? this.#portals.get(first) : undefined;
    const answer = this.#asked + 1;
    if (type === "Q" || type === "S") this.#asked += 1;
    return { bytes, type, statement, answer };
  }
}

/** The length after `skip` bytes includes itself, but not those. */
function sizeAt(rest: Buffer, skip: number): number | undefined {
  return rest.length < skip + 4 ? undefined : skip + rest.readInt32BE(skip);
}

function letterOf(frame: Buffer): string {
  return frame.toString("latin1", 0, 1);
}
