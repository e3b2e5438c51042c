// SQLite payload cipher: the payload cipher as SQL functions, and the store's probes of codecs.
//
// sqlite-payload-cipher.Y1. Without a codec there is no cipher: SQLite casts payloads. With a codec, statements call `reprise_encode` and
//   `reprise_decode` with the payload's place (row-sql.Q1). An encoded payload starts with a byte that no text starts with, so
//   rows from before the codec are read as they are.

import type { DatabaseSync } from "node:sqlite";
import type { PayloadCodec, PayloadContext } from "../../base/index.ts";
import {
  CODEC_KEY_PREFIX,
  CODEC_KEYS_END,
  openPayloadCipher,
  PayloadCipher,
  type CodecProbe,
} from "../payload-cipher.ts";

export class SqlitePayloadCipher extends PayloadCipher {
  register(db: DatabaseSync): void {
    const options = { directOnly: true } as const;
    db.function("reprise_encode", options, (text, run, place, field) =>
      text === null ? null : this.encode(String(text), contextOf(run, place, field)),
    );
    db.function("reprise_decode", options, (blob, run, place, field) =>
      blob === null ? null : this.decode(blob as Uint8Array, contextOf(run, place, field)),
    );
  }
}

function contextOf(run: unknown, place: unknown, field: unknown): PayloadContext {
  return { run: Number(run), place: String(place), field: String(field) };
}

function readNotes(db: DatabaseSync): readonly CodecProbe[] {
  const rows = db
    .prepare("select key, value from meta where key >= ? and key < ? order by key")
    .all(CODEC_KEY_PREFIX, CODEC_KEYS_END);
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
