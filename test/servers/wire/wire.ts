// Wire: finds message boundaries and the statement of each message. Just enough for a proxy: no
// encryption, no compression.

import type { ServerKind } from "../kinds.ts";
import { MysqlWire } from "./mysql.ts";
import { PostgresWire } from "./postgres.ts";

export interface Frame {
  readonly bytes: Buffer;
  /** PostgreSQL: the letter of the message. MySQL: "query", "prepare", "execute" for those commands, else "". */
  readonly type: string;
  /** The statement that this message makes the server run; for a prepared one, its text. */
  readonly statement?: string | undefined;
  /** To the server: the number of its response, from 1. To the client: the number of the response it completes. */
  readonly answer?: number | undefined;
}

/** Both directions of one connection. Each call returns the frames that the bytes complete. */
export interface Wire {
  toServer(bytes: Buffer): readonly Frame[];
  toClient(bytes: Buffer): readonly Frame[];
}

export function wireOf(kind: ServerKind): Wire {
  return kind === "postgres" ? new PostgresWire() : new MysqlWire();
}
