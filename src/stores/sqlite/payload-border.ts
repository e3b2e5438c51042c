// Payload border: where the text of payloads becomes the bytes a codec makes of it, and text again.
//
// Y1. Without a codec there is no border: the statements are the same, byte for byte, and SQLite casts.
// Y2. With one, `cast(? as blob)` and `cast(column as text)` in the statements become calls of two SQL functions, which are
//     told the payload's place. What a codec made begins with a byte no text begins with, so rows from before the codec are
//     read as they are.
// Y3. Reading never throws: what cannot be brought back is a text that refuses to be decoded, and hurts one run only.
// Y4. A store notes, for each way it was ever written, one sealed probe. Whoever cannot open all of them is turned away
//     before anything is written: a process without the codec, without a key, or with a wrong one.

import type { DatabaseSync } from "node:sqlite";
import {
  InvariantError,
  RepriseError,
  SEALED,
  unreadableText,
  type PayloadCodec,
  type PayloadContext,
} from "../../base/index.ts";
import { COLUMNS, PLACES, type PayloadPlace } from "./payload-columns.ts";

type Blob = Uint8Array | null;

export class PayloadBorder {
  readonly codec: PayloadCodec;
  /** False when only the names of the codecs are known: nothing can be read or written. */
  readonly isOpen: boolean;
  /** Payloads `reseal` had to leave as they were. */
  unreadable = 0;

  constructor(codec: PayloadCodec, isOpen: boolean) {
    this.codec = codec;
    this.isOpen = isOpen;
  }

  /** Says what is missing, where it cannot be done without. */
  refuse(): never {
    this.codec.decode(new Uint8Array(), probeContext(this.codec.name));
    throw new InvariantError("A border that is open was asked to refuse.");
  }

  register(db: DatabaseSync): void {
    const options = { directOnly: true } as const;
    db.function("reprise_seal", options, (text, run, place, field) =>
      text === null ? null : this.#seal(String(text), contextOf(run, place, field)),
    );
    db.function("reprise_open", options, (blob, run, place, field) =>
      blob === null ? null : this.#open(blob as Uint8Array, contextOf(run, place, field)),
    );
    db.function("reprise_reseal", options, (blob, run, place, field) =>
      this.#reseal(blob as Blob, contextOf(run, place, field)),
    );
  }

  /** Y2 */
  textOf(name: string, sql: string): string {
    if (!touchesPayloads(sql)) return sql;
    const place = PLACES[name];
    if (place === undefined) throw new InvariantError(`The statement ${name} does not say where its payload lies.`);
    return this.placed(sql, place);
  }

  placed(sql: string, at: PayloadPlace): string {
    const column = COLUMNS[at.field];
    const where = `${at.run ?? column.run}, ${at.place ?? column.place}, '${at.field}'`;
    return sql.replace(TO_BLOB, `reprise_seal($1, ${where})`).replace(TO_TEXT, `reprise_open($1, ${where})`);
  }

  #seal(text: string, context: PayloadContext): Uint8Array {
    let bytes: Uint8Array;
    try {
      bytes = this.codec.encode(text, context);
    } catch (error) {
      throw codecError(error, `The codec ${this.codec.name} could not encode ${nameOf(context)}`, context);
    }
    const sealed = Buffer.allocUnsafe(bytes.length + 1);
    sealed[0] = SEALED;
    sealed.set(bytes, 1);
    return sealed;
  }

  /** Y3 */
  #open(blob: Uint8Array, context: PayloadContext): string {
    try {
      return this.openOrThrow(blob, context);
    } catch (error) {
      return unreadableText(error as RepriseError);
    }
  }

  openOrThrow(blob: Uint8Array, context: PayloadContext): string {
    if (blob[0] !== SEALED) return Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength).toString();
    try {
      return this.codec.decode(blob.subarray(1), context);
    } catch (error) {
      throw codecError(error, `${nameOf(context)} cannot be read`, context);
    }
  }

  #reseal(blob: Blob, context: PayloadContext): Blob {
    if (blob === null) return null;
    let text: string;
    try {
      text = this.openOrThrow(blob, context);
    } catch {
      this.unreadable += 1;
      return blob;
    }
    return this.#seal(text, context);
  }

  // ── probes (Y4) ──

  probe(): string {
    return Buffer.from(this.#seal(PROBE, probeContext(this.codec.name))).toString("base64");
  }

  checkProbe(name: string, probe: string): void {
    const text = this.openOrThrow(Buffer.from(probe, "base64"), probeContext(name));
    if (text !== PROBE)
      throw new RepriseError(
        "PAYLOAD_UNREADABLE",
        `The codec ${this.codec.name} does not give back what ${name} wrote. Give the codec this store was written with.`,
      );
  }
}

const TO_BLOB = /cast\((\?\d*) as blob\)/g;
const TO_TEXT = /cast\((\w+) as text\)/g;

export function touchesPayloads(sql: string): boolean {
  return /cast\(\?\d* as blob\)|cast\(\w+ as text\)/.test(sql);
}

function contextOf(run: unknown, place: unknown, field: unknown): PayloadContext {
  return { run: Number(run), place: String(place), field: String(field) };
}

const NAMES: Readonly<Record<string, (place: string) => string>> = {
  journal: (place) => `Entry ${place}`,
  inbox: (place) => `Message ${place}`,
  chunk: (place) => `Chunk ${place}`,
  failures: (place) => `What failed before in ${place}`,
  evidence: () => "The evidence",
  schedule: (place) => `The input of the schedule ${place}`,
  langgraph: (place) => `The LangGraph value ${place}`,
  langgraph_write: (place) => `The LangGraph write ${place}`,
  probe: (place) => `What ${place} left in the store`,
};

function nameOf({ run, field, place }: PayloadContext): string {
  const name = NAMES[field]?.(place) ?? `The ${field} ${place}`;
  return run === 0 ? name : `${name} of run number ${run}`;
}

function codecError(error: unknown, what: string, context: PayloadContext): RepriseError {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof RepriseError)
    return new RepriseError(error.code, `${what}: ${reason}`, {
      cause: error.cause,
      details: { ...context, ...error.details },
    });
  return new RepriseError(
    "PAYLOAD_UNREADABLE",
    `${what}: ${reason.replace(/\.$/, "")}. Give the codec it was written with, or restore the row from a backup.`,
    { cause: error, details: { ...context } },
  );
}

const PROBE = '"reprise"';

function probeContext(name: string): PayloadContext {
  return { run: 0, field: "probe", place: name };
}

const PREFIX = "codec ";

interface Note {
  readonly name: string;
  readonly probe: string;
}

function readNotes(db: DatabaseSync): readonly Note[] {
  const rows = db.prepare("select key, value from meta where key >= ? and key < 'codec!' order by key").all(PREFIX);
  return (rows as { key: string; value: string }[]).map(({ key, value }) => ({
    name: key.slice(PREFIX.length),
    probe: value,
  }));
}

/** The names under which this store has been written with a codec. */
export function codecNames(db: DatabaseSync): readonly string[] {
  return readNotes(db).map(({ name }) => name);
}

/** Y4. Undefined when there is neither a codec nor a payload that needs one. */
export function openBorder(
  db: DatabaseSync,
  path: string,
  codec: PayloadCodec | undefined,
  mayBeLocked: boolean,
): PayloadBorder | undefined {
  const notes = readNotes(db);
  if (codec === undefined && notes.length === 0) return undefined;
  if (codec === undefined) {
    const names = notes.map(({ name }) => name).join(", ");
    if (!mayBeLocked) throw locked(path, names);
    return new PayloadBorder(lockedCodec(path, names), false);
  }
  const border = new PayloadBorder(codec, true);
  refuseBrokenCodec(border);
  for (const { name, probe } of notes) border.checkProbe(name, probe);
  return border;
}

/** From now on whoever opens the store must be able to read what this codec writes. */
export function noteCodec(db: DatabaseSync, border: PayloadBorder): void {
  if (readNotes(db).some(({ name }) => name === border.codec.name)) return;
  db.prepare("insert into meta (key, value) values (?, ?) on conflict (key) do nothing").run(
    PREFIX + border.codec.name,
    border.probe(),
  );
}

/** After everything has been written anew. */
export function forgetOtherCodecs(db: DatabaseSync, border: PayloadBorder): void {
  db.prepare("delete from meta where key >= ? and key < 'codec!' and key <> ?").run(PREFIX, PREFIX + border.codec.name);
}

function refuseBrokenCodec(border: PayloadBorder): void {
  try {
    border.checkProbe(border.codec.name, border.probe());
  } catch (cause) {
    throw new RepriseError(
      "BAD_OPTIONS",
      `The codec ${border.codec.name} does not give back what it is given: decode(encode(text)) must be text.`,
      { cause },
    );
  }
}

function locked(path: string, names: string): RepriseError {
  return new RepriseError(
    "PAYLOAD_KEY_MISSING",
    `The payloads in ${path} are written with a codec (${names}), and none was given. Give \`codec\` to createEngine, or --codec to the command.`,
    { details: { path, codecs: names } },
  );
}

function lockedCodec(path: string, names: string): PayloadCodec {
  const refuse = (): never => {
    throw locked(path, names);
  };
  return { name: names, encode: refuse, decode: refuse };
}
