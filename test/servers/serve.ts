// Serve: a server for other programs: `node test/servers/serve.ts postgres` starts one and prints a line of
// JSON about it. It runs until the input is closed or this process ends.

import { whyNot, type ServerKind } from "./kinds.ts";
import { startServer } from "./server.ts";

const kind = process.argv[2] as ServerKind;
if (kind !== "postgres" && kind !== "mysql") {
  process.stderr.write(`Expected postgres or mysql; got ${JSON.stringify(kind)}.\n`);
  process.exit(2);
}
const obstacle = whyNot(kind);
if (obstacle !== undefined) {
  process.stderr.write(`${obstacle}.\n`);
  process.exit(3);
}
await using server = await startServer(kind);
const { url, pid, folder, version } = server;
process.stdout.write(`${JSON.stringify({ kind, url, pid, folder, version })}\n`);
for await (const _ of process.stdin);
