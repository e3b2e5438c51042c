// Packets: splits statements into packets. The server accepts no packet longer than `max_allowed_packet`.

import { RepriseError } from "../../base/index.ts";

/** Larger packets are not faster. */
const PREFERRED = 8 * 1_048_576;
/** Room for the protocol's own bytes. */
const SPARE = 1_024;

/** In order. A guard checks the statement before it, so the two stay in one packet. */
export function packetsOf(statements: readonly string[], maxPacket: number): readonly (readonly string[])[] {
  const most = Math.min(PREFERRED, maxPacket - SPARE);
  const packets: string[][] = [[]];
  let size = 0;
  for (const statement of statements) {
    const bytes = bytesOf(statement);
    if (bytes + SPARE > maxPacket)
      throw new RepriseError(
        "PAYLOAD_TOO_LARGE",
        `Committing: a payload needs a packet of ${bytes} bytes, but the server accepts ${maxPacket}. Raise max_allowed_packet on the server, or store the value elsewhere and pass a reference.`,
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

/** At most three bytes per UTF-16 unit; counted exactly only for long statements. */
function bytesOf(statement: string): number {
  return statement.length < 100_000 ? statement.length * 3 : Buffer.byteLength(statement);
}
