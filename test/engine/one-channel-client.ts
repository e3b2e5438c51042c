// A client in its own process that learns of the worker's commits in one way only: starts runs one after the other, and prints the
// result of the last.

import { createClient, workflow } from "reprise";
import { oneChannelStore, type Channel } from "./one-channel-store.ts";

const echo = workflow("echo", async (ctx, text: string) => ctx.run("echo", () => text));

const [url, channel] = process.argv.slice(2);
await using client = await createClient({ store: oneChannelStore(url!, channel as Channel), definitions: [echo] });
for (const id of ["run-1", "run-2"]) await (await client.start(echo, "hello", { id })).result();
const last = await client.start(echo, "hello", { id: "run-3" });
console.log(await last.result());
