// Hooks: webhooks that come in (hook.ts), and calls of callback URLs (callback-urls.ts).

import { RepriseError } from "../../base/index.ts";
import type { hookOperations } from "../../contract/index.ts";
import { parseJson } from "../../http/index.ts";
import { actOnHook, outcomeOf, runOf } from "../hooks/act-on-hook.ts";
import { readCallback } from "../hooks/callback-urls.ts";
import type { HandlersOf } from "../host.ts";

const MAX_DEPTH = 64;

export const hookHandlers: HandlersOf<typeof hookOperations> = {
  async receiveWebhook({ host, params, request: { headers }, body: bytes }) {
    const hook = host.hooks.get(params["name"] ?? "");
    if (hook === undefined)
      throw new RepriseError(
        "WEBHOOK_REFUSED",
        `This server has no hook ${params["name"]}. Add it: createServer(engine, { hooks: { ${params["name"]}: … } }).`,
        { details: { status: 404 } },
      );
    // hook.H1
    const sender = await hook.scheme.check({ headers, bytes, now: host.clock.now() });
    if ("refused" in sender)
      throw new RepriseError(
        "WEBHOOK_REFUSED",
        `The webhook for ${hook.name} is refused: ${sender.refused}. Compare the secret here with the sender's.`,
        { details: { status: 401 } },
      );
    const { id, type } = sender;
    const action = await hook.then({ id, type, headers, body: jsonOf(bytes) });
    return action === undefined ? { status: "ignored" } : actOnHook(host.client, hook.name, id, action);
  },

  async receiveCallback({ host, params, request: { headers }, body: bytes }) {
    const target = readCallback(host.access.secret, params["token"] ?? "");
    if (target === undefined)
      throw new RepriseError(
        "WEBHOOK_REFUSED",
        "This callback URL was not made for this server: `secret` of callbackUrls and of createServer must be the same.",
        { details: { status: 401 } },
      );
    const { run: id, port, key } = target;
    const record = await host.store.findRun(id);
    if (record === undefined) throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}.`);
    const run = runOf(host.client, record.definition, id);
    const value = valueOf(headers, bytes);
    return outcomeOf(() => run.resolve(port, value, { by: "callback", ...(key !== undefined && { key }) }));
  },
};

/** The body as JSON; undefined: it is none. */
function jsonOf(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes, MAX_DEPTH);
  } catch {
    return undefined;
  }
}

/** The value of a call: JSON, the fields of a form, or text. */
function valueOf(headers: Headers, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^application\/(?:[\w.+-]+\+)?json$/.test(type)) return parseJson(bytes, MAX_DEPTH);
  const text = Buffer.from(bytes).toString("utf8");
  if (type === "application/x-www-form-urlencoded") return Object.fromEntries(new URLSearchParams(text));
  if (type === "" || type.startsWith("text/")) return text;
  throw new RepriseError("BAD_FORMAT", `The body has the type ${type.slice(0, 100)}. Send JSON, a form or text.`, {
    details: { status: 415 },
  });
}
