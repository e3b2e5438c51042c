// Access: signing in and out, and minting browser tokens.

import { RepriseError, toMs, type Duration } from "../../base/index.ts";
import type { accessOperations } from "../../contract/index.ts";
import { MAX_BROWSER_TTL_MS } from "../auth/browser-token.ts";
import { isScoped, maySeeRun } from "../auth/scope.ts";
import type { HandlersOf } from "../host.ts";

const DEFAULT_TTL_MS = 10 * 60_000;

export const accessHandlers: HandlersOf<typeof accessOperations> = {
  signIn: ({ host, request, url, body }) =>
    new Response(null, { status: 204, headers: { "set-cookie": host.access.signIn(request, url, body) } }),

  signOut: ({ host, request, url }) =>
    new Response(null, { status: 204, headers: { "set-cookie": host.access.signOut(request, url) } }),

  async createBrowserToken({ host, caller, body }) {
    const { run: id, stream, role, ttl, name } = body;
    // A token that was minted for an hour must not mint the next hour.
    if (caller === undefined || caller.run !== undefined)
      throw new RepriseError("ROLE_REQUIRED", "A browser token cannot make another one. Use an API token.", {
        details: { status: 403 },
      });
    const ttlMs = ttl === undefined ? DEFAULT_TTL_MS : toMs(ttl as Duration, "ttl");
    if (ttlMs < 1 || ttlMs > MAX_BROWSER_TTL_MS)
      throw new RepriseError("BAD_OPTIONS", `ttl: expected at most 1 hour, got ${ttlMs} ms.`);
    const run = await host.store.findRun(id);
    if (run === undefined || (isScoped(caller) && !maySeeRun(caller, run)))
      throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store: \`reprise list\`.`);
    const expiresAt = host.clock.now() + ttlMs;
    const token = host.access.mint(caller, { run: id, stream, role, name, expiresAt });
    return { token, expiresAt: new Date(expiresAt).toISOString() };
  },
};
