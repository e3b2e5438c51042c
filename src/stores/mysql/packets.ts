// Packets: statements that travel together. The server takes no packet longer than `max_allowed_packet`.

import { RepriseError } from "../../base/index.ts";

/** Larger ones gain nothing. */
const PREFERRED = 8 * 1_048_576;
/** For the command's own bytes. */
const SPARE = 1_024;

/** In order. A guard looks at what the statement before it did, so the two stay together. */
export function packetsOf(statements: readonly string[], maxPacket: number): readonly (readonly string[])[] {
  const most = Math.min(PREFERRED, maxPacket - SPARE);
  const packets: string[][] = [[]];
  let size = 0;
  for (const statement of statements) {
    const bytes = bytesOf(statement);
    if (bytes + SPARE > maxPacket)
      throw new RepriseError(
        "PAYLOAD_TOO_LARGE",
        `Committing: a payload needs a packet of ${bytes} bytes, the server takes ${maxPacket}. Raise its max_allowed_packet, or keep the value elsewhere and pass a reference.`,
        { details: { bytes, limit: maxPacket } },
      );
    if (size + bytes > most && packets.at(-1)!.length > 0 && !isGuard(statement)) {
      packets.push([]);
      size = 0;
    }
    packets.at(-1)!.push(statement);
    size += bytes + 1;
  }
  return packets;
}

function isGuard(statement: string): boolean {
  return statement.startsWith("set @reprise_guard");
}

/** Three bytes for each UTF-16 unit at most; counted only where it could matter. */
function bytesOf(statement: string): number {
  return statement.length < 100_000 ? statement.length * 3 : Buffer.byteLength(statement);
}
