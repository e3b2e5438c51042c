// Client: a client on an open store. It runs no worker, and creates and migrates nothing.
//
// The engine needs a definition to send a message, but the code is often not available: during an incident, or on another
// machine. A placeholder has the name of the run's definition and the requested ports. It can deliver messages and
// control runs; it must not replay (docs/decisions/0019).

import { createClient, type Client } from "../engine/index.ts";
import type { AnyTask, Definition, Ports, Store } from "../kernel/index.ts";
import { workflow } from "../workflow/index.ts";
import { payloadOptions } from "./payload-module.ts";

/** Creates a client on an open store, does the work and closes both. */
export async function withClient<T>(
  store: Store,
  definitions: readonly (Definition | AnyTask)[],
  work: (client: Client) => Promise<T>,
): Promise<T> {
  await using client = await createClient({
    store: { "~open": () => Promise.resolve(store) },
    definitions,
    ...payloadOptions(),
    logger: false,
  });
  return await work(client);
}

export function placeholderDefinition(definition: string, ports: Ports = {}, version = 1): Definition {
  return workflow(definition, { ports, version }, () =>
    Promise.reject(new Error("A placeholder definition cannot run.")),
  );
}
