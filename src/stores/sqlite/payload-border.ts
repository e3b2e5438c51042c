// Payload border: where the text of payloads becomes the bytes a codec makes of it, and text again.
//
// Y1. Without a codec there is no border: the statements are the same, byte for byte, and SQLite casts.
// Y2. With one, `cast(? as blob)` and `cast(column as text)` in the statements become calls of two SQL functions, which are
//     told the payload's place. What a codec made begins with a byte no text begins with, so rows from before the codec are
//     read as they are.
// Y3, Y4 are in ../seal.ts.

import type { DatabaseSync } from "node:sqlite";
import { InvariantError, type PayloadCodec, type PayloadContext } from "../../base/index.ts";
import { CODEC_NOTE, openSeal, Seal, type CodecNote } from "../seal.ts";
import { COLUMNS, PLACES, type PayloadPlace } from "./payload-columns.ts";

type Blob = Uint8Array | null;

export class PayloadBorder extends Seal {
  register(db: DatabaseSync): void {
    const options = { directOnly: true } as const;
    db.function("reprise_seal", options, (text, run, place, field) =>
      text === null ? null : this.seal(String(text), contextOf(run, place, field)),
    );
    db.function("reprise_open", options, (blob, run, place, field) =>
      blob === null ? null : this.open(blob as Uint8Array, contextOf(run, place, field)),
    );
    db.function("reprise_reseal", options, (blob, run, place, field) =>
      this.reseal(blob as Blob, contextOf(run, place, field)),
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
}

const TO_BLOB = /cast\((\?\d*) as blob\)/g;
const TO_TEXT = /cast\((\w+) as text\)/g;

export function touchesPayloads(sql: string): boolean {
  return /cast\(\?\d* as blob\)|cast\(\w+ as text\)/.test(sql);
}

function contextOf(run: unknown, place: unknown, field: unknown): PayloadContext {
  return { run: Number(run), place: String(place), field: String(field) };
}

function readNotes(db: DatabaseSync): readonly CodecNote[] {
  const rows = db.prepare("select key, value from meta where key >= ? and key < 'codec!' order by key").all(CODEC_NOTE);
  return (rows as { key: string; value: string }[]).map(({ key, value }) => ({
    name: key.slice(CODEC_NOTE.length),
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
  return openSeal(readNotes(db), path, codec, mayBeLocked, (...given) => new PayloadBorder(...given));
}

/** From now on whoever opens the store must be able to read what this codec writes. */
export function noteCodec(db: DatabaseSync, border: PayloadBorder): void {
  if (readNotes(db).some(({ name }) => name === border.codec.name)) return;
  db.prepare("insert into meta (key, value) values (?, ?) on conflict (key) do nothing").run(
    CODEC_NOTE + border.codec.name,
    border.probe(),
  );
}

/** After everything has been written anew. */
export function forgetOtherCodecs(db: DatabaseSync, border: PayloadBorder): void {
  db.prepare("delete from meta where key >= ? and key < 'codec!' and key <> ?").run(
    CODEC_NOTE,
    CODEC_NOTE + border.codec.name,
  );
}
