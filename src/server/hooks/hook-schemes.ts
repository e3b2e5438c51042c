// Hook schemes: how other systems sign webhooks. Each scheme compares in constant time, over the bytes that arrived (hook.H1).

import { createHmac } from "node:crypto";
import { isSame, sha256Hex, webhookKeyOf, webhookRefusal, type EpochMs } from "../../base/index.ts";

/** Who sent a webhook, and which one it is. */
export interface HookSender {
  /** The same for every delivery of one webhook. */
  readonly id: string;
  readonly type?: string;
}

export interface ArrivedHook {
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly now: EpochMs;
}

export interface HookScheme {
  check(
    webhook: ArrivedHook,
  ): HookSender | { readonly refused: string } | Promise<HookSender | { readonly refused: string }>;
}

export function standardScheme(secrets: readonly string[], toleranceMs: number, what: string): HookScheme {
  const keys = secrets.map((secret) => webhookKeyOf(secret, `${what}.secret`));
  return {
    check({ headers, bytes, now }) {
      const refused = webhookRefusal(keys, headers, bytes, now, toleranceMs);
      return refused === undefined ? { id: headers.get("webhook-id") ?? "" } : { refused };
    },
  };
}

/** GitHub signs the body only: neither the id of a delivery nor its time. */
export function githubScheme(secrets: readonly string[]): HookScheme {
  return {
    check({ headers, bytes }) {
      const given = Buffer.from((headers.get("x-hub-signature-256") ?? "").replace(/^sha256=/, ""), "hex");
      if (!isSigned(secrets, [bytes], [given])) return { refused: "x-hub-signature-256 does not match" };
      const type = headers.get("x-github-event");
      return { id: headers.get("x-github-delivery") ?? sha256Hex(bytes), ...(type !== null && { type }) };
    },
  };
}

/** Stripe signs the time and the body; the id of the event is in the body. */
export function stripeScheme(secrets: readonly string[], toleranceMs: number): HookScheme {
  return {
    check({ headers, bytes, now }) {
      const parts = (headers.get("stripe-signature") ?? "").split(",").map((part) => part.trim().split("="));
      const seconds = parts.find(([name]) => name === "t")?.[1] ?? "";
      const given = parts.filter(([name]) => name === "v1").map(([, hex = ""]) => Buffer.from(hex, "hex"));
      if (!/^\d{1,12}$/.test(seconds) || !isSigned(secrets, [`${seconds}.`, bytes], given))
        return { refused: "stripe-signature does not match" };
      if (Math.abs(now - Number(seconds) * 1_000) > toleranceMs)
        return { refused: `its time differs by more than ${toleranceMs / 1_000} s from the server's` };
      return stripeSender(bytes);
    },
  };
}

/** After the signature was checked. */
function stripeSender(bytes: Uint8Array): HookSender {
  try {
    const { id, type } = JSON.parse(Buffer.from(bytes).toString("utf8")) as {
      readonly id?: unknown;
      readonly type?: unknown;
    };
    return { id: typeof id === "string" ? id : sha256Hex(bytes), ...(typeof type === "string" && { type }) };
  } catch {
    return { id: sha256Hex(bytes) };
  }
}

function isSigned(
  secrets: readonly string[],
  parts: readonly (string | Uint8Array)[],
  given: readonly Uint8Array[],
): boolean {
  const matches = secrets.map((secret) => {
    const hmac = createHmac("sha256", secret);
    for (const part of parts) hmac.update(part);
    const expected = hmac.digest();
    return given.map((one) => isSame(expected, one)).includes(true);
  });
  return matches.includes(true);
}
