// Opened to read: a remote store of a process that only reads.
//
// opened-to-read.V1. It writes nothing: its connections have no row in `writers`, it records neither a codec nor a break of history,
//   and it deletes no old rows. Each session is read-only on the server, too, so that a mistake here is an error there.
// opened-to-read.V2. So a standby will do: a hot standby of PostgreSQL, a read-only replica of MySQL or MariaDB. It may lag behind its
//   primary. It needs no `LISTEN`, which a standby refuses; changes are found by polling.

import { RepriseError } from "../../base/index.ts";

/** opened-to-read.V1. `what` names the work that would write. */
export function refuseWrite(what: string): never {
  throw new RepriseError(
    "STORE_READ_ONLY",
    `${what}: this process opened the store to read. Open it to write, at the address of the primary.`,
  );
}
