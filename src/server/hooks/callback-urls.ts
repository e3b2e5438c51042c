// Callback URLs: addresses that resolve a promise of a run, for other systems to call.
//
// callback-urls.C1. A URL is a pure function of run, port, key and secret: the code of a run gets the same one every time.
// callback-urls.C2. It is signed for this use only, and its holder can resolve this promise, once, and nothing else.

import { RepriseError } from "../../base/index.ts";
import { secretOf, type ServerSecret } from "../auth/server-secret.ts";

/** Options of `callbackUrls`: those of the server that takes the calls. */
export interface CallbackOptions {
  /** The address of the server: `https://runs.example.org`. */
  origin: string;
  /** The `secret` of the server. */
  secret: string;
  /** The `basePath` of the server; default `/`. */
  basePath?: string;
}

/** The promise that a callback URL resolves. */
export interface CallbackTarget {
  readonly run: string;
  readonly port: string;
  readonly key?: string;
}

/**
 * Makes URLs that other systems call to resolve a promise of a run with the body of their request. The same run, port and key always give
 * the same URL.
 *
 * @example
 * ```ts
 * import { promise, workflow } from "reprise";
 * import { callbackUrls } from "reprise/server";
 * const callback = callbackUrls({ origin: "https://runs.example.org", secret: "0123456789abcdef0123456789abcdef" });
 * export const payment = workflow("payment", { ports: { paid: promise<{ amount: number }>() } }, async (ctx) => {
 *   await ctx.run("ask", () => console.log(callback({ run: ctx.runId, port: "paid" })));
 *   return ctx.promise("paid", { timeout: "1 day" });
 * });
 * ```
 */
export function callbackUrls({ origin, secret, basePath = "/" }: CallbackOptions): (target: CallbackTarget) => string {
  const base = URL.parse(origin);
  if (base === null || !/^https?:$/.test(base.protocol))
    throw new RepriseError(
      "BAD_OPTIONS",
      `callbackUrls: origin: expected an address such as "https://runs.example.org", got ${JSON.stringify(origin)}.`,
    );
  const signer = secretOf(secret, "callbackUrls: secret");
  const path = basePath.replace(/\/$/, "");
  return ({ run, port, key }) => {
    if (typeof run !== "string" || typeof port !== "string" || (key !== undefined && typeof key !== "string"))
      throw new RepriseError(
        "BAD_OPTIONS",
        "callbackUrls: expected the id of a run, the name of a port, and a key or none.",
      );
    return `${base.origin}${path}/v1/hooks/wait/${signer.sign("callback", key === undefined ? [run, port] : [run, port, key])}`;
  };
}

/** callback-urls.C2. The promise of a URL; undefined: this server's secret did not sign it. */
export function readCallback(secret: ServerSecret, token: string): CallbackTarget | undefined {
  const value = secret.verify("callback", token);
  if (!Array.isArray(value)) return undefined;
  const [run, port, key] = value as readonly string[];
  return { run: String(run), port: String(port), ...(key !== undefined && { key }) };
}
