// Client: an engine on a store that is there. It works on nothing, creates nothing and migrates nothing.
//
// A message needs a definition, and often the code is not at hand: in an incident, on another machine, in another
// language. A stand-in carries the name that the run's row has and the ports that are asked for, and nothing else. It
// can bring messages and steer; it must never replay (docs/decisions/0019).

import { createEngine, type Engine } from "../engine/index.ts";
import type { AnyTask, Definition, Ports, Store } from "../kernel/index.ts";
import { workflow } from "../workflow/index.ts";
import { payloadOptions } from "./payload-module.ts";

/** Makes a client on an open store, does the work, closes both. */
export async function withClient<T>(
  store: Store,
  definitions: readonly (Definition | AnyTask)[],
  work: (engine: Engine) => Promise<T>,
): Promise<T> {
  await using engine = await createEngine({
    store: { "~open": () => Promise.resolve(store) },
    definitions,
    worker: false,
    ...payloadOptions(),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  return await work(engine);
}

export function standIn(definition: string, ports: Ports = {}, version = 1): Definition {
  return workflow(definition, { ports, version }, () => Promise.reject(new Error("A stand-in runs nothing.")));
}
