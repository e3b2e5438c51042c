// Wire: writes statements and their values as messages of PostgreSQL's protocol into one buffer.
//
// The driver writes a Sync after each statement, and arrays as text. Here one Sync ends all statements of a round trip: after an
// error the server skips the rest, so nothing after a failed BEGIN can run outside a transaction. Arrays are binary. Rates are in
// docs/decisions/0055.

import type { WireValue } from "../remote/backend.ts";

/** The type of a value, or of the elements of an array. */
export type WireType = "int" | "text" | "payload";

/** Type oids, fixed in PostgreSQL's catalog. */
const SCALAR: Readonly<Record<WireType, number>> = { int: 20, text: 25, payload: 17 };
const ARRAY: Readonly<Record<WireType, number>> = { int: 1016, text: 1009, payload: 1001 };

/** One column of rows, or of key tuples, as an array. */
interface ArrayValue {
  readonly type: WireType;
  readonly rows: readonly Readonly<Record<string, WireValue> | Record<number, WireValue>>[];
  readonly column: string | number;
}

export type Parameter = { readonly type: WireType; readonly value: WireValue } | ArrayValue;

/** A statement to prepare. */
export interface Shape {
  /** Undefined: prepared again each time. */
  readonly name: string | undefined;
  readonly text: string;
}

export interface Bound {
  readonly shape: Shape;
  readonly values: readonly Parameter[];
}

const FIRST_BYTES = 16 * 1024;
/** A buffer that grew beyond this for one large batch is not kept. */
const KEEP_BYTES = 4 * 1024 * 1024;
/** Shorter texts are written by a loop, which is faster than a call into the runtime. */
const SHORT = 24;

/** One per connection; the buffer is reused after the server has answered everything in it. */
export class WireWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #at = 0;

  /** Returns what was written and empties the writer. */
  take(): Buffer {
    const bytes = this.#bytes.subarray(0, this.#at);
    if (this.#bytes.length > KEEP_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
    this.#at = 0;
    return bytes;
  }

  parse({ shape, values }: Bound): void {
    const start = this.#begin(0x50);
    this.#cstring(shape.name ?? "");
    this.#cstring(shape.text);
    this.#ensure(2 + values.length * 4);
    this.#int16(values.length);
    for (const value of values) this.#int32("rows" in value ? ARRAY[value.type] : SCALAR[value.type]);
    this.#end(start);
  }

  bindAndExecute({ shape, values }: Bound): void {
    const start = this.#begin(0x42);
    this.#ensure(1);
    this.#bytes[this.#at++] = 0;
    this.#cstring(shape.name ?? "");
    this.#ensure(8);
    // All parameters are binary, all results text.
    this.#int16(1);
    this.#int16(1);
    this.#int16(values.length);
    for (const value of values)
      if ("rows" in value) this.#array(value);
      else this.#value(value.type, value.value);
    this.#ensure(2);
    this.#int16(0);
    this.#end(start);
    const execute = this.#begin(0x45);
    this.#ensure(5);
    this.#bytes[this.#at++] = 0;
    this.#int32(0);
    this.#end(execute);
  }

  sync(): void {
    this.#end(this.#begin(0x53));
  }

  #array({ type, rows, column }: ArrayValue): void {
    this.#ensure(24);
    const start = this.#at;
    this.#at += 4;
    this.#int32(rows.length === 0 ? 0 : 1);
    // There may be nulls.
    this.#int32(1);
    this.#int32(SCALAR[type]);
    if (rows.length > 0) {
      this.#int32(rows.length);
      this.#int32(1);
      for (const row of rows) this.#value(type, (row as Record<string | number, WireValue>)[column]);
    }
    this.#bytes.writeInt32BE(this.#at - start - 4, start);
  }

  #value(type: WireType, value: WireValue | undefined): void {
    if (value === null || value === undefined) {
      this.#ensure(4);
      this.#int32(-1);
    } else if (type === "int") this.#int8(value as number);
    else if (typeof value === "string") this.#text(value);
    else this.#raw(value as Uint8Array);
  }

  #int8(value: number): void {
    this.#ensure(12);
    this.#int32(8);
    const high = Math.floor(value / 0x1_0000_0000);
    this.#int32(high);
    this.#int32(value - high * 0x1_0000_0000);
  }

  #text(value: string): void {
    this.#ensure(4 + value.length * 3);
    const start = this.#at;
    this.#at += 4;
    if (value.length > SHORT || !this.#ascii(value)) this.#at = start + 4 + this.#bytes.write(value, start + 4);
    this.#bytes.writeInt32BE(this.#at - start - 4, start);
  }

  /** False when the text is not ASCII. */
  #ascii(value: string): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    for (let index = 0; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[at++] = code;
    }
    this.#at = at;
    return true;
  }

  #raw(value: Uint8Array): void {
    this.#ensure(4 + value.length);
    this.#int32(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  #cstring(value: string): void {
    this.#ensure(value.length * 3 + 1);
    this.#at += this.#bytes.write(value, this.#at);
    this.#bytes[this.#at++] = 0;
  }

  #int16(value: number): void {
    this.#at = this.#bytes.writeUInt16BE(value, this.#at);
  }

  #int32(value: number): void {
    const bytes = this.#bytes;
    bytes[this.#at++] = value >>> 24;
    bytes[this.#at++] = value >>> 16;
    bytes[this.#at++] = value >>> 8;
    bytes[this.#at++] = value;
  }

  #begin(code: number): number {
    this.#ensure(5);
    this.#bytes[this.#at++] = code;
    const start = this.#at;
    this.#at += 4;
    return start;
  }

  #end(start: number): void {
    this.#bytes.writeInt32BE(this.#at - start, start);
  }

  #ensure(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow((this.#bytes.length + count) * 2);
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
