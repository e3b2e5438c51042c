// MySQL's protocol: packets of a length, a sequence number, and a body. Nothing marks the end of a response;
// it must be parsed to be found.

import { Collector } from "./collector.ts";
import type { Frame, Wire } from "./wire.ts";

const COMMANDS: ReadonlyMap<number, string> = new Map([
  [0x03, "query"],
  [0x16, "prepare"],
  [0x17, "execute"],
]);
/** Commands without a response. */
const UNANSWERED = new Set([0x01, 0x18, 0x19]);

const DEPRECATE_EOF = 1 << 24;
const MORE_RESULTS = 0x0008;

interface Command {
  readonly type: string;
  readonly statement: string | undefined;
}

export class MysqlWire implements Wire {
  readonly #fromClient = new Collector();
  readonly #fromServer = new Collector();
  readonly #statements = new Map<number, string>();
  readonly #pending: Command[] = [];
  #reader = new AnswerReader("", false);
  #hasNoEof = false;
  #isGreeted = false;
  #asked = 0;
  #answered = 0;

  toServer(bytes: Buffer): readonly Frame[] {
    return Array.from(this.#fromClient.take(bytes, packetSize), (frame) =>
      // Only a command starts an exchange; the rest is authentication.
      frame[3] === 0 ? this.#command(frame) : this.#greeting(frame),
    );
  }

  toClient(bytes: Buffer): readonly Frame[] {
    return Array.from(this.#fromServer.take(bytes, packetSize), (frame) => {
      const [command] = this.#pending;
      if (command === undefined) return { bytes: frame, type: "" };
      const body = frame.subarray(4);
      if (command.type === "prepare" && frame[3] === 1 && body[0] === 0)
        this.#statements.set(body.readUInt32LE(1), command.statement ?? "");
      if (!this.#reader.ends(body)) return { bytes: frame, type: "" };
      this.#pending.shift();
      this.#answered += 1;
      this.#readNext();
      return { bytes: frame, type: "", answer: this.#answered };
    });
  }

  #greeting(bytes: Buffer): Frame {
    if (!this.#isGreeted) this.#hasNoEof = (bytes.readUInt32LE(4) & DEPRECATE_EOF) !== 0;
    this.#isGreeted = true;
    return { bytes, type: "" };
  }

  #command(bytes: Buffer): Frame {
    const code = bytes[4] ?? 0;
    const type = COMMANDS.get(code) ?? "";
    if (UNANSWERED.has(code)) return { bytes, type };
    const isText = type === "query" || type === "prepare";
    const text = isText ? bytes.toString("utf8", 5) : undefined;
    const statement = type === "execute" ? this.#statements.get(bytes.readUInt32LE(5)) : text;
    this.#pending.push({ type, statement });
    if (this.#pending.length === 1) this.#readNext();
    this.#asked += 1;
    return { bytes, type, statement: type === "prepare" ? undefined : statement, answer: this.#asked };
  }

  #readNext(): void {
    this.#reader = new AnswerReader(this.#pending[0]?.type ?? "", this.#hasNoEof);
  }
}

/** Reads one response, packet by packet. */
class AnswerReader {
  readonly #isPrepare: boolean;
  readonly #hasNoEof: boolean;
  #state: "head" | "definitions" | "rows" = "head";
  /** Remaining packets of this state. */
  #left = 0;

  constructor(type: string, hasNoEof: boolean) {
    this.#isPrepare = type === "prepare";
    this.#hasNoEof = hasNoEof;
  }

  /** Whether this packet is the last one. */
  ends(body: Buffer): boolean {
    if (body[0] === 0xff && this.#state !== "definitions") return true;
    if (this.#state === "head") return this.#isPrepare ? this.#endsAtPrepared(body) : this.#endsAtHead(body);
    if (this.#state === "rows") return this.#endsAtRow(body);
    this.#left -= 1;
    if (this.#left > 0) return false;
    if (this.#isPrepare) return true;
    this.#state = "rows";
    return false;
  }

  #endsAtHead(body: Buffer): boolean {
    if (body[0] === 0) return !hasMore(body);
    this.#state = "definitions";
    this.#left = lengthAt(body, 0).value + (this.#hasNoEof ? 0 : 1);
    return false;
  }

  #endsAtPrepared(body: Buffer): boolean {
    const counts = [body.readUInt16LE(5), body.readUInt16LE(7)].filter((count) => count > 0);
    this.#left = counts.reduce((sum, count) => sum + count + (this.#hasNoEof ? 0 : 1), 0);
    this.#state = "definitions";
    return this.#left === 0;
  }

  #endsAtRow(body: Buffer): boolean {
    const isEnd = body[0] === 0xfe && (this.#hasNoEof ? body.length < 0xffffff : body.length < 9);
    if (!isEnd) return false;
    this.#state = "head";
    return !(this.#hasNoEof ? hasMore(body) : (body.readUInt16LE(3) & MORE_RESULTS) !== 0);
  }
}

/** After two length-encoded numbers, an OK packet has a flag for further results. */
function hasMore(body: Buffer): boolean {
  const affected = lengthAt(body, 1);
  const { next } = lengthAt(body, affected.next);
  return (body.readUInt16LE(next) & MORE_RESULTS) !== 0;
}

function lengthAt(body: Buffer, at: number): { readonly value: number; readonly next: number } {
  const first = body[at] ?? 0;
  const bytes = first === 0xfc ? 2 : first === 0xfd ? 3 : first === 0xfe ? 6 : 0;
  if (bytes === 0) return { value: first, next: at + 1 };
  return { value: body.readUIntLE(at + 1, bytes), next: at + 1 + (first === 0xfe ? 8 : bytes) };
}

function packetSize(rest: Buffer): number | undefined {
  return rest.length < 4 ? undefined : 4 + rest.readUIntLE(0, 3);
}
