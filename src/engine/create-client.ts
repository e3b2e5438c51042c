// createClient: a process that starts runs and controls them, and executes none.

import { systemClock } from "../base/index.ts";
import type { AnyTask, Definition } from "../kernel/index.ts";
import { openUnlessAborted } from "./abort.ts";
import type { Client, ClientOptions, DefinitionsIn } from "./api.ts";
import { ClientCore } from "./client-core.ts";
import { ClientWriter } from "./client-writer.ts";
import { checkClientOptions } from "./engine-options.ts";
import { checkWebhooks } from "./webhook-options.ts";

/**
 * Opens a store to start, find and control runs. The workers of other processes execute them.
 *
 * @example
 * ```ts
 * import { createClient, workflow } from "reprise";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using client = await createClient({ store: "sqlite:hello.db", definitions: [hello] });
 * const run = await client.start(hello, "Ada", { id: "hello-1" });
 * console.log((await run.info()).status);
 * ```
 */
export async function createClient<const Defs extends Definition | AnyTask>(
  options: ClientOptions<Defs>,
): Promise<Client<DefinitionsIn<Defs>>> {
  const { source, durability, codec, contents, parts, signal } = checkClientOptions(options, "createClient");
  const webhooks = checkWebhooks(options.webhooks);
  const { timers, random, registry, polls, telemetry } = parts;
  const open = async (): Promise<ClientCore> => {
    const store = await source["~open"]({ clock: systemClock, timers, random, durability, codec, contents });
    store.announce(webhooks);
    const client = new ClientCore(
      { ...parts, store, kind: "client" },
      (events) => new ClientWriter({ store, timers, registry, polls, telemetry }, events),
    );
    try {
      await client.begin();
    } catch (error) {
      client.crash();
      await store.close();
      throw error;
    }
    return client;
  };
  return (await openUnlessAborted(signal, open)) as unknown as Client<DefinitionsIn<Defs>>;
}
