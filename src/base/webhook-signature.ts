// Webhook signature: signs and checks messages by the rules of Standard Webhooks (standardwebhooks.com), version v1.
//
// webhook-signature.S1. The signature covers id, time and body: none of them can be changed or exchanged. It is HMAC-SHA256 over
//   `<id>.<seconds>.<body>`, and several signatures are separated by spaces, one per secret: so secrets rotate without a gap.
// webhook-signature.S2. Signatures are compared in constant time, over the bytes that arrived, before anything parses them.
// webhook-signature.S3. A message that is older or newer than the tolerance is refused: a recorded one cannot be sent again later.

import { createHmac, timingSafeEqual } from "node:crypto";
import { RepriseError } from "./errors.ts";
import type { EpochMs } from "./ports.ts";

const PREFIX = "whsec_";
const MIN_BYTES = 24;
const MAX_BYTES = 64;

/** The time that a message may be early or late. */
export const WEBHOOK_TOLERANCE_MS = 5 * 60_000;

export interface SignedHeaders {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/** The bytes of a secret `whsec_<base64>`. `what` names the option in the error. */
export function webhookKeyOf(secret: unknown, what: string): Uint8Array {
  const text = typeof secret === "string" && secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : undefined;
  const bytes = text === undefined || !/^[A-Za-z0-9+/]+={0,2}$/.test(text) ? undefined : Buffer.from(text, "base64");
  if (bytes !== undefined && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES) return bytes;
  // The message must not quote the secret.
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected ${PREFIX} followed by base64 of ${MIN_BYTES} to ${MAX_BYTES} bytes. Make one: node -p "'${PREFIX}' + crypto.randomBytes(32).toString('base64')".`,
  );
}

/** webhook-signature.S1 */
export function signWebhook(
  keys: readonly Uint8Array[],
  { id, at, body }: { readonly id: string; readonly at: EpochMs; readonly body: string },
): SignedHeaders {
  const seconds = String(Math.floor(at / 1_000));
  const signatures = keys.map((key) => `v1,${mac(key, id, seconds, Buffer.from(body)).toString("base64")}`);
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": signatures.join(" ") };
}

/** Why a message is refused; undefined: its signature holds. */
export function webhookRefusal(
  keys: readonly Uint8Array[],
  headers: Headers,
  body: Uint8Array,
  now: EpochMs,
  toleranceMs = WEBHOOK_TOLERANCE_MS,
): string | undefined {
  const id = headers.get("webhook-id") ?? "";
  const seconds = headers.get("webhook-timestamp") ?? "";
  const given = headers.get("webhook-signature") ?? "";
  if (id === "" || given === "" || !/^\d{1,12}$/.test(seconds))
    return "the headers webhook-id, webhook-timestamp and webhook-signature are missing or malformed";
  const signatures = given.split(" ").flatMap((one) => (one.startsWith("v1,") ? [one.slice(3)] : []));
  const matches = keys.map((key) => {
    const expected = mac(key, id, seconds, body);
    return signatures.map((one) => isSame(expected, Buffer.from(one, "base64"))).includes(true);
  });
  if (!matches.includes(true)) return "its signature does not match";
  // webhook-signature.S3. After the signature: an unsigned message learns nothing about the clock.
  if (Math.abs(now - Number(seconds) * 1_000) > toleranceMs)
    return `its time ${seconds} differs by more than ${toleranceMs / 1_000} s from the server's`;
  return undefined;
}

/** webhook-signature.S2 */
export function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function mac(key: Uint8Array, id: string, seconds: string, body: Uint8Array): Buffer {
  return createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest();
}
