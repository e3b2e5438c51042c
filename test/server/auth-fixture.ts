// A server with tokens of every role over a real engine, and requests to it.

import { createEngine, promise, signal, stream, workflow, type Engine } from "reprise";
import { createServer, tokenHash, type Server, type ServerOptions, type TokenSettings } from "reprise/server";
import { ROLES, type Role } from "../../src/contract/index.ts";

/** In the input, output, state, logs and messages of runs: must not be in an answer to a viewer. */
export const SECRET = "4111-1111-1111-1111";

export const approval = workflow(
  "approval",
  { ports: { ok: promise<{ ok: boolean }>(), note: signal<string>(), words: stream<string>() } },
  async (ctx, card: string) => {
    await ctx.run("charge", () => `charged ${card}`);
    ctx.emit("words", `reads ${card}`);
    const decision = await ctx.promise("ok", { show: { card }, timeout: "2 days" });
    return { card, ok: decision?.ok ?? false };
  },
);

export const other = workflow("other", async (_ctx, card: string) => ({ card }));

export const ORIGIN = "http://127.0.0.1:7420";

/** A token that is as long as a real one, and recognizable. */
export function tokenFor(name: string): string {
  return `rp_00000000_${name.padEnd(43, "x")}`;
}

export function settings(name: string, role: Role, more: Partial<TokenSettings> = {}): TokenSettings {
  return { name, hash: tokenHash(tokenFor(name)), role, ...more };
}

export const ROLE_TOKENS: readonly TokenSettings[] = ROLES.map((role) => settings(role, role));

export async function openEngine(): Promise<Engine<typeof approval | typeof other>> {
  return createEngine({ store: "sqlite::memory:", definitions: [approval, other], logger: false });
}

export interface AskOptions {
  readonly method?: string;
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly origin?: string;
}

/** Sends a request as a program would: with a bearer token and JSON. */
export async function ask(server: Server, path: string, options: AskOptions = {}): Promise<Response> {
  const { method = options.body === undefined ? "GET" : "POST", token, body, headers = {} } = options;
  return server.fetch(
    new Request(`${options.origin ?? ORIGIN}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
}

export async function codeOf(response: Response | Promise<Response>): Promise<string> {
  const answered = await response;
  const { code } = (await answered.json()) as { code: string };
  return `${answered.status} ${code}`;
}

export function serverWithTokens(engine: Engine<any>, options: Partial<ServerOptions> = {}): Server {
  return createServer(engine, { auth: { tokens: ROLE_TOKENS }, ...options });
}
