// Hook: a webhook of another system that this server takes: how its sender is known, and what it does.
//
// hook.H1. The signature is checked over the bytes that arrived, before anything parses them. A webhook whose signature does not hold has
//   no effect and learns nothing.
// hook.H2. The id of a webhook is the id of the run that it starts, or the `dedupId` of its signal: a repeated delivery acts once.

import {
  checkName,
  checkOptionNames,
  RepriseError,
  toMs,
  type Duration,
  WEBHOOK_TOLERANCE_MS,
} from "../../base/index.ts";
import type { Definition } from "../../kernel/index.ts";
import { githubScheme, standardScheme, stripeScheme, type HookScheme, type HookSender } from "./hook-schemes.ts";

/** A webhook whose signature holds. */
export interface HookEvent {
  /** Its id: the same for every delivery of it. */
  readonly id: string;
  /** What it reports, as far as its scheme says it: `push`, `invoice.paid`. */
  readonly type: string | undefined;
  readonly headers: Headers;
  /** Its body as JSON; `undefined` if it is none. */
  readonly body: unknown;
}

/** What a webhook does. */
export type HookAction =
  /** Starts a run. Its id is by default made of the hook's name and the event's id. */
  | {
      readonly start: Definition | string;
      readonly input?: unknown;
      readonly id?: string;
      readonly tags?: readonly string[];
    }
  /** Sends a signal to a run. */
  | {
      readonly signal: string;
      readonly definition: Definition | string;
      readonly run: string;
      readonly value?: unknown;
    }
  /** Resolves a promise of a run. */
  | {
      readonly resolve: string;
      readonly definition: Definition | string;
      readonly run: string;
      readonly key?: string;
      readonly value?: unknown;
    };

/**
 * A webhook that a server takes at `/v1/hooks/<name>`.
 *
 * @example
 * ```ts
 * import type { Hook } from "reprise/server";
 * export const github: Hook = {
 *   scheme: "github",
 *   secret: process.env["GITHUB_SECRET"] ?? "",
 *   then: ({ type, body }) => (type === "push" ? { start: "deploy", input: body } : undefined),
 * };
 * ```
 */
export interface Hook {
  /** How the sender signs: Standard Webhooks, GitHub, Stripe; or `verify`. */
  scheme?: "standard" | "github" | "stripe";
  /** The secret that the sender signs with; several while it changes. Of `standard`: `whsec_…`. */
  secret?: string | readonly string[];
  /** Instead of a scheme: the id of a webhook whose sender you know, or undefined to refuse it. It gets the bytes as they arrived. */
  verify?: (webhook: {
    readonly headers: Headers;
    readonly bytes: Uint8Array;
  }) => HookSender | undefined | Promise<HookSender | undefined>;
  /** How old a webhook may be, where its scheme has a time. Default: 5 minutes. */
  tolerance?: Duration;
  /** What the event does; `undefined`: nothing. */
  then: (event: HookEvent) => HookAction | undefined | Promise<HookAction | undefined>;
}

/** A hook whose options were checked. */
export interface CheckedHook {
  readonly name: string;
  readonly scheme: HookScheme;
  readonly then: Hook["then"];
}

const OPTIONS = ["scheme", "secret", "verify", "tolerance", "then"];
/** The path of callback URLs. */
const RESERVED = "wait";

export function checkHooks(hooks: Readonly<Record<string, Hook>> | undefined): ReadonlyMap<string, CheckedHook> {
  return new Map(Object.entries(hooks ?? {}).map(([name, hook]) => [name, checkHook(name, hook)]));
}

function checkHook(name: string, hook: Hook): CheckedHook {
  const what = `hooks.${name}`;
  checkName(name, "hooks: name");
  if (name === RESERVED || /[/:]/.test(name))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: the name is one segment of a path, without a colon, and not "${RESERVED}".`,
    );
  if (typeof hook !== "object" || hook === null)
    throw new RepriseError("BAD_OPTIONS", `${what}: expected an object with scheme, secret and then.`);
  checkOptionNames(hook, OPTIONS, what);
  if (typeof hook.then !== "function")
    throw new RepriseError("BAD_OPTIONS", `${what}.then: expected a function that says what the webhook does.`);
  return { name, scheme: schemeOf(hook, what), then: hook.then };
}

function schemeOf({ scheme, secret, verify, tolerance }: Hook, what: string): HookScheme {
  if (verify !== undefined) {
    if (scheme !== undefined || secret !== undefined)
      throw new RepriseError("BAD_OPTIONS", `${what}: pass either scheme and secret, or verify.`);
    return { check: async (webhook) => (await verify(webhook)) ?? { refused: "`verify` does not know its sender" } };
  }
  const toleranceMs = tolerance === undefined ? WEBHOOK_TOLERANCE_MS : toMs(tolerance, `${what}.tolerance`);
  const secrets = typeof secret === "string" ? [secret] : (secret ?? []);
  if (secrets.length === 0 || secrets.some((one) => typeof one !== "string" || one.length < 8))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}.secret: expected the secret that the sender signs with, of 8 characters or more: a shorter one can be guessed.`,
    );
  switch (scheme) {
    case "standard":
      return standardScheme(secrets, toleranceMs, what);
    case "github":
      return githubScheme(secrets);
    case "stripe":
      return stripeScheme(secrets, toleranceMs);
    default:
      throw new RepriseError(
        "BAD_OPTIONS",
        `${what}.scheme: expected "standard", "github" or "stripe", or \`verify\`.`,
      );
  }
}
