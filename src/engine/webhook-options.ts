// Webhooks of an engine or a client, checked before a store is opened.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError, webhookKeyOf } from "../base/index.ts";
import { RUN_EVENT_TYPES, type Definition, type RunEventType } from "../kernel/index.ts";
import type { OpenedPromise, WebhookEndpoint } from "../worker/index.ts";
import { checkObject } from "./engine-options.ts";

/**
 * Where events of runs are sent, signed by the rules of Standard Webhooks.
 *
 * @example
 * ```ts
 * import type { Webhook } from "reprise";
 * export const webhooks: Webhook[] = [
 *   { name: "pager", url: "https://pager.example.org/reprise", secret: process.env["PAGER_SECRET"] ?? "", events: ["run.failed"] },
 * ];
 * ```
 */
export interface Webhook {
  /** Events that wait for their delivery belong to this name, so that the URL can change. Default: host and path of the URL. */
  name?: string;
  /** `https:` or `http:`. The address may be private: it comes from you, not from a request. Redirects are not followed. */
  url: string;
  /** `whsec_` and base64 of 24 to 64 bytes. With several, every event is signed with each: so receivers change one at a time. */
  secret: string | readonly string[];
  /** Default: all. */
  events?: readonly RunEventType[];
  /** Only runs of these definitions. Default: all. */
  definitions?: readonly (string | Definition)[];
  /** Also sends outputs, errors, reasons and what a promise shows, as plain JSON. Default: false, only metadata. */
  payloads?: boolean;
  /** Further headers, such as `authorization`. */
  headers?: Readonly<Record<string, string>>;
  /** Makes the link of a `promise.opened`, such as an approval link. */
  link?: (promise: OpenedPromise) => string | Promise<string>;
}

const NAMES = ["name", "url", "secret", "events", "definitions", "payloads", "headers", "link"];

export function checkWebhooks(webhooks: unknown): readonly WebhookEndpoint[] {
  if (webhooks === undefined) return [];
  if (!Array.isArray(webhooks))
    throw new RepriseError("BAD_OPTIONS", `webhooks: expected an array of { url, secret, … }, got ${typeof webhooks}.`);
  const endpoints = webhooks.map((one, index) => checkWebhook(one as Webhook, `webhooks[${index}]`));
  const names = endpoints.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new RepriseError("BAD_OPTIONS", `webhooks: two of them have the name ${twice}. Give each its own \`name\`.`);
  return endpoints;
}

function checkWebhook(webhook: Webhook, what: string): WebhookEndpoint {
  checkObject(webhook, `${what}: expected an object`);
  checkOptionNames(webhook, NAMES, what);
  const url = checkUrl(webhook.url, `${what}.url`);
  const name = webhook.name ?? `${url.host}${url.pathname === "/" ? "" : url.pathname}`;
  checkName(name, `${what}.name`);
  const secrets = Array.isArray(webhook.secret) ? (webhook.secret as readonly string[]) : [webhook.secret];
  if (secrets.length === 0) throw new RepriseError("BAD_OPTIONS", `${what}.secret: expected at least one secret.`);
  const { definitions, payloads = false, headers = {}, link } = webhook;
  if (typeof payloads !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `${what}.payloads: expected true or false, got ${inspect(payloads)}.`);
  if (link !== undefined && typeof link !== "function")
    throw new RepriseError("BAD_OPTIONS", `${what}.link: expected a function, got ${typeof link}.`);
  return {
    name,
    destination: `webhook:${name}`,
    url: url.href,
    keys: secrets.map((secret) => webhookKeyOf(secret, `${what}.secret`)),
    types: checkEvents(webhook.events ?? RUN_EVENT_TYPES, `${what}.events`),
    definitions: definitions?.map((one) => (typeof one === "string" ? one : one.name)),
    payloads,
    headers: checkHeaders(headers, `${what}.headers`),
    link,
  };
}

function checkUrl(text: unknown, what: string): URL {
  const url = typeof text === "string" ? URL.parse(text) : null;
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  if (url !== null && isHttp && url.username === "" && url.password === "" && url.hash === "") return url;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected an address with http: or https:, without user, password and fragment. Pass credentials in \`headers\`.`,
  );
}

function checkEvents(events: readonly RunEventType[], what: string): readonly RunEventType[] {
  const unknown = Array.isArray(events) ? events.find((type) => !RUN_EVENT_TYPES.includes(type)) : "no list";
  if (unknown === undefined && events.length > 0) return events;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected some of ${RUN_EVENT_TYPES.map((type) => `"${type}"`).join(", ")}, got ${inspect(events)}.`,
  );
}

function checkHeaders(headers: Readonly<Record<string, string>>, what: string): Readonly<Record<string, string>> {
  checkObject(headers, `${what}: expected an object of texts`);
  try {
    const checked = new Headers(headers);
    const reserved = [...checked.keys()].find((name) => name.startsWith("webhook-") || name === "content-type");
    if (reserved === undefined) return Object.fromEntries(checked);
    throw new RepriseError("BAD_OPTIONS", `${what}: Reprise sets ${reserved} itself.`);
  } catch (error) {
    if (error instanceof RepriseError) throw error;
    throw new RepriseError("BAD_OPTIONS", `${what}: ${String(error)}`, { cause: error });
  }
}
