// createHttpClient: a client of a server, for programs without the store and for browsers.

import { checkOptionNames, RepriseError, toMs, type Duration } from "../base/portable.ts";
import type { Client } from "../engine/index.ts";
import type { Definition } from "../kernel/index.ts";
import { HttpClient } from "./http-client.ts";
import { Transport } from "./transport.ts";
import { webPorts } from "./web-ports.ts";

/** Options of `createHttpClient`. */
export interface HttpClientOptions<Defs = unknown> {
  /** The address of the server, with its base path: `https://runs.example.org`. In a page of the server itself, `location.origin`. */
  url: string;
  /** The token that every request carries. Default: none, as a page of the server itself is signed in by its cookie. */
  token?: string;
  /** Definitions, for their types only; `createHttpClient<typeof definitions>` does without their code. */
  definitions?: Defs;
  /** How long a request that may be repeated is repeated while the server does not answer; default one minute. */
  retryFor?: Duration;
  /** Makes the requests; default: the global `fetch`. */
  fetch?: typeof fetch;
}

/**
 * The definitions in a list, in a record, or one alone.
 *
 * @example
 * ```ts
 * import { workflow, type Definition } from "reprise";
 * import type { DefinitionsOf } from "reprise/client";
 * const definitions = [workflow("hello", async (_ctx, name: string) => `Hello, ${name}`)] as const;
 * const name: DefinitionsOf<typeof definitions>["name"] = "hello";
 * console.log(name satisfies Definition["name"]);
 * ```
 */
export type DefinitionsOf<Defs> = unknown extends Defs
  ? Definition
  : Defs extends Definition
    ? Defs
    : Defs extends readonly (infer One)[]
      ? Extract<One, Definition>
      : Extract<Defs[keyof Defs], Definition>;

/**
 * Connects to a server: the `Client` interface over HTTP, in Node and in browsers. Sends nothing by itself.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { createHttpClient } from "reprise/client";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * async function greet(url: string, token: string): Promise<string> {
 *   await using client = createHttpClient({ url, token, definitions: [hello] });
 *   const run = await client.start(hello, "Ada");
 *   return run.result();
 * }
 * ```
 */
export function createHttpClient<const Defs = unknown>(options: HttpClientOptions<Defs>): Client<DefinitionsOf<Defs>> {
  checkOptionNames(options, ["definitions", "fetch", "retryFor", "token", "url"], "createHttpClient");
  const { url, token, retryFor = "1 minute" } = options;
  if (typeof url !== "string" || !/^https?:\/\//.test(url))
    throw new RepriseError(
      "BAD_OPTIONS",
      `createHttpClient: url: expected an address such as "http://127.0.0.1:7420", got ${JSON.stringify(url) ?? "undefined"}.`,
    );
  const transport = new Transport({
    url: url.replace(/\/+$/, ""),
    token,
    // Bound: browsers refuse a `fetch` that is called on another object.
    fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
    retryMs: toMs(retryFor, "createHttpClient: retryFor"),
    ports: webPorts,
  });
  return new HttpClient(transport) as unknown as Client<DefinitionsOf<Defs>>;
}
