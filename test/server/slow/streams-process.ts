// A process of the crash test of streams: node streams-process.ts worker|server <store> [port]
//
// A worker emits one word for every message that it gets. A server has no definitions: it reads runs without their code.

import { createClient, createEngine } from "reprise";
import { createServer } from "reprise/server";
import { tell } from "./streams-definitions.ts";

const [role, store = "", port = "0"] = process.argv.slice(2);

if (role === "worker") {
  const engine = await createEngine({ store, definitions: [tell], worker: { lease: "1 s" }, logger: false });
  await engine.start(tell, undefined, { id: "tale" });
  process.send?.("ready");
} else {
  const client = await createClient({ store, definitions: [], logger: false });
  const { url } = await createServer(client).listen({ port: Number(port) });
  process.send?.(url);
}
