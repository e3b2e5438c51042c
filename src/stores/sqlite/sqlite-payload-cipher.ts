// SQLite payload cipher: applies the payload cipher inside SQL statements.
//
// sqlite-payload-cipher.Y1. Without a codec there is no cipher: the statements stay the same, and SQLite casts payloads.
// sqlite-payload-cipher.Y2. With a codec, `cast(? as blob)` and `cast(column as text)` in the statements become calls of two SQL
//   functions, with the payload's place as arguments. An encoded payload starts with a byte that no text starts with, so rows
//   from before the codec are read as they are.

import type { DatabaseSync } from "node:sqlite";
import { InvariantError, type PayloadCodec, type PayloadContext } from "../../base/index.ts";
import { CODEC_KEY_PREFIX, openPayloadCipher, PayloadCipher, type CodecProbe } from "../payload-cipher.ts";
import { COLUMNS, PLACES, type PayloadPlace } from "./payload-columns.ts";

type Blob = Uint8Array | null;

export class SqlitePayloadCipher extends PayloadCipher {
  register(db: DatabaseSync): void {
    const options = { directOnly: true } as const;
    db.function("reprise_encode", options, (text, run, place, field) =>
      text === null ? null : this.encode(String(text), contextOf(run, place, field)),
    );
    db.function("reprise_decode", options, (blob, run, place, field) =>
      blob === null ? null : this.decode(blob as Uint8Array, contextOf(run, place, field)),
    );
    db.function("reprise_reencode", options, (blob, run, place, field) =>
      this.reencode(blob as Blob, contextOf(run, place, field)),
    );
  }

  /** sqlite-payload-cipher.Y2 */
  textOf(name: string, sql: string): string {
    if (!touchesPayloads(sql)) return sql;
    const place = PLACES[name];
    if (place === undefined)
      throw new InvariantError(`The statement ${name} is missing in PLACES (payload-columns.ts).`);
    return this.placed(sql, place);
  }

  placed(sql: string, at: PayloadPlace): string {
    const column = COLUMNS[at.field];
    const where = `${at.run ?? column.run}, ${at.place ?? column.place}, '${at.field}'`;
    return sql.replace(TO_BLOB, `reprise_encode($1, ${where})`).replace(TO_TEXT, `reprise_decode($1, ${where})`);
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

function readNotes(db: DatabaseSync): readonly CodecProbe[] {
  const rows = db
    .prepare("select key, value from meta where key >= ? and key < 'codec!' order by key")
    .all(CODEC_KEY_PREFIX);
  return (rows as { key: string; value: string }[]).map(({ key, value }) => ({
    name: key.slice(CODEC_KEY_PREFIX.length),
    probe: value,
  }));
}

/** The names under which this store has been written with a codec. */
export function codecNames(db: DatabaseSync): readonly string[] {
  return readNotes(db).map(({ name }) => name);
}

/** payload-cipher.Y2 */
export function openSqlitePayloadCipher(
  db: DatabaseSync,
  path: string,
  codec: PayloadCodec | undefined,
  mayBeLocked: boolean,
): SqlitePayloadCipher | undefined {
  return openPayloadCipher(readNotes(db), path, codec, mayBeLocked, (...given) => new SqlitePayloadCipher(...given));
}

/** From now on every process that opens the store must be able to decode what this codec writes. */
export function saveCodecProbe(db: DatabaseSync, cipher: SqlitePayloadCipher): void {
  if (readNotes(db).some(({ name }) => name === cipher.codec.name)) return;
  db.prepare("insert into meta (key, value) values (?, ?) on conflict (key) do nothing").run(
    CODEC_KEY_PREFIX + cipher.codec.name,
    cipher.probe(),
  );
}

/** Called after every payload was encoded again. */
export function deleteOtherCodecProbes(db: DatabaseSync, cipher: SqlitePayloadCipher): void {
  db.prepare("delete from meta where key >= ? and key < 'codec!' and key <> ?").run(
    CODEC_KEY_PREFIX,
    CODEC_KEY_PREFIX + cipher.codec.name,
  );
}
