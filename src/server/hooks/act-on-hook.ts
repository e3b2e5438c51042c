// Act on hook: does what a hook says about an event, once (hook.H2).

import { RepriseError, sha256Hex, type ErrorCode } from "../../base/index.ts";
import type { hookAnswer, Static } from "../../contract/index.ts";
import type { Client } from "../../engine/index.ts";
import type { Definition } from "../../kernel/index.ts";
import type { HookAction } from "./hook.ts";

export type HookOutcome = Static<typeof hookAnswer>;

/** A run with any ports. */
interface AnyRun {
  signal(name: string, value: unknown, options: object): Promise<void>;
  resolve(name: string, value: unknown, options: object): Promise<void>;
}

/** Ids of runs have 255 characters at most. */
const MAX_ID = 150;

export async function actOnHook(client: Client, hook: string, id: string, action: HookAction): Promise<HookOutcome> {
  // Names of hooks have no colon, so the ids of two hooks differ.
  const dedupId = `${hook}:${id.length <= MAX_ID && /^[\x21-\x7e]+$/.test(id) ? id : sha256Hex(id)}`;
  if ("start" in action) return start(client, action, dedupId);
  const run = runOf(client, action.definition, action.run);
  if ("signal" in action) return outcomeOf(() => run.signal(action.signal, action.value, { dedupId }));
  if ("resolve" in action) {
    const { resolve, key, value } = action;
    return outcomeOf(() => run.resolve(resolve, value, { by: `hook ${hook}`, ...(key !== undefined && { key }) }));
  }
  throw new RepriseError(
    "BAD_OPTIONS",
    `hooks.${hook}.then returned an object with neither start, signal nor resolve. Return one of them, or undefined.`,
    { details: { status: 500 } },
  );
}

type StartAction = Extract<HookAction, { readonly start: unknown }>;

async function start(client: Client, action: StartAction, dedupId: string): Promise<HookOutcome> {
  const { start: what, input, id = dedupId, tags } = action;
  try {
    await (client.start as (what: Definition | string, input: unknown, options: object) => Promise<unknown>)(
      what,
      input,
      { id, ...(tags !== undefined && { tags }) },
    );
    return { status: "done" };
  } catch (error) {
    // The id belongs to this webhook: only an earlier delivery can have started a run with it.
    if (hasCode(error, "START_CONFLICT") && id === dedupId) return { status: "repeated" };
    throw error;
  }
}

/** A promise is settled once: a webhook that comes later need not be sent again. */
export async function outcomeOf(act: () => Promise<void>): Promise<HookOutcome> {
  try {
    await act();
    return { status: "done" };
  } catch (error) {
    if (hasCode(error, "PROMISE_ALREADY_RESOLVED", "RUN_ENDED")) return { status: "late" };
    throw error;
  }
}

export function runOf(client: Client, definition: Definition | string, id: string): AnyRun {
  return (client.get as (what: Definition | string, id: string) => unknown)(definition, id) as AnyRun;
}

function hasCode(error: unknown, ...codes: readonly ErrorCode[]): boolean {
  return error instanceof RepriseError && codes.includes(error.code);
}
