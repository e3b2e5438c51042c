// A client in a process without a worker: starts a run, waits for its result and prints it.

import { createClient, workflow } from "reprise";

const echo = workflow("echo", async (ctx, text: string) => ctx.run("echo", () => text));

await using client = await createClient({ store: process.argv[2]!, definitions: [echo] });
const run = await client.start(echo, "hello", { id: "run-1" });
console.log(await run.result({ timeout: "20 s" }));
