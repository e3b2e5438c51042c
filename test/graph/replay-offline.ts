// Replays a run in a separate process without network. Arguments: the store's file, the run's id.

import childProcess from "node:child_process";
import dgram from "node:dgram";
import dns from "node:dns";
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import tls from "node:tls";

const reached: string[] = [];
function deny(owner: object, names: readonly string[]): void {
  for (const name of names)
    Object.defineProperty(owner, name, {
      configurable: true,
      writable: true,
      value: () => {
        reached.push(name);
        throw new Error(`${name} is denied here`);
      },
    });
}
deny(globalThis, ["fetch", "WebSocket"]);
deny(net, ["connect", "createConnection"]);
deny(net.Socket.prototype, ["connect"]);
deny(tls, ["connect"]);
deny(http, ["request", "get"]);
deny(https, ["request", "get"]);
deny(dns, ["lookup", "resolve"]);
deny(dgram, ["createSocket"]);
deny(childProcess, ["spawn", "exec", "execFile", "fork", "spawnSync", "execSync", "execFileSync"]);
syncBuiltinESMExports();

const { createClient } = await import("reprise");
const { asking } = await import("./calling-graph.ts");
const [path, id] = process.argv.slice(2) as [string, string];
await using engine = await createClient({ store: `sqlite:${path}`, definitions: [asking("")] });
const run = engine.get("asking", id);
const replay = await run.replay();
const end = replay.status === "same" && replay.end?.status === "completed" ? replay.end.output : undefined;
const { digest } = await run.info();
console.log(JSON.stringify({ replay: { ...replay, end: undefined }, state: JSON.stringify(end), digest, reached }));
