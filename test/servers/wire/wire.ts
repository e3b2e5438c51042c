// Where messages begin and end, and which statement a message makes the server run. Knows just enough for a proxy: no
// encryption, no compression.

import type { ServerKind } from "../kinds.ts";
import { MysqlWire } from "./mysql.ts";
import { PostgresWire } from "./postgres.ts";

export interface Frame {
  readonly bytes: Buffer;
  /** PostgreSQL: the letter of the message. MySQL: "query", "prepare", "execute" for those commands, else "". */
  readonly type: string;
  /** The statement that the server shall run because of this message; of a prepared one its text. */
  readonly statement?: string | undefined;
  /** To the server: which of its answers, counted from 1, this message belongs to. To the client: which one it completes. */
  readonly answer?: number | undefined;
}

/** Both directions of one connection. Each call answers the frames which the bytes complete. */
export interface Wire {
  toServer(bytes: Buffer): readonly Frame[];
  toClient(bytes: Buffer): readonly Frame[];
}

export function wireOf(kind: ServerKind): Wire {
  return kind === "postgres" ? new PostgresWire() : new MysqlWire();
}
