// Webhook endpoint: where events of runs are sent, and what they say.

import { digestOf, plainJson, RepriseError } from "../base/index.ts";
import {
  decodeData,
  eventTypeOf,
  promiseNameOf,
  type ClaimedMessage,
  type EventSubscription,
  type RunEventType,
} from "../kernel/index.ts";

/** A promise that a run waits for, for the link of a `promise.opened`. */
export interface OpenedPromise {
  readonly run: string;
  readonly definition: string;
  readonly port: string;
  readonly key?: string;
  /** When the wait ends at the latest. */
  readonly deadline?: Date;
}

/** A checked endpoint. */
export interface WebhookEndpoint extends EventSubscription {
  readonly name: string;
  readonly url: string;
  readonly keys: readonly Uint8Array[];
  /** Whether outputs, errors and what a promise shows are sent, too. */
  readonly payloads: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly link: ((promise: OpenedPromise) => string | Promise<string>) | undefined;
}

/** The body of a webhook, as Standard Webhooks recommends it. */
export interface WebhookBody {
  readonly type: RunEventType;
  /** When it happened; ISO 8601. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The same for every delivery, and for every endpoint. Runs of other stores, and a later run with the same id, have other ones. */
export function eventIdOf({ runId, generation, event }: ClaimedMessage): string {
  if (event === undefined) return "";
  const { kind, entry, runCreatedAt, at } = event;
  const hasNoEntry = kind === "blocked" || kind === "determinism_violation" || kind === "budget";
  const place = hasNoEntry ? at : entry;
  return `evt_${digestOf("reprise/webhook/v1", runId, generation, runCreatedAt, kind, place).slice(0, 32)}`;
}

/** run-event.E1. What an event says. */
export async function webhookBodyOf(message: ClaimedMessage, endpoint: WebhookEndpoint): Promise<WebhookBody> {
  const { event, runId, generation } = message;
  if (event === undefined) throw new TypeError("only events have a body");
  const { kind, definition, version, entry, at } = event;
  const data = { run: runId, definition, version, generation, entry };
  return {
    type: eventTypeOf(kind),
    timestamp: new Date(at).toISOString(),
    data:
      kind === "promise"
        ? { ...data, ...(await promiseData(message, endpoint)) }
        : { ...data, ...endData(message, endpoint) },
  };
}

function endData({ event, data }: ClaimedMessage, { payloads }: WebhookEndpoint): object {
  switch (event?.kind) {
    case "failed": {
      const { error } = decodeData("RunFailed", data);
      const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
      return { status: "failed", ...(code !== undefined && { code }), ...(payloads && { error: plainJson(error) }) };
    }
    case "completed":
      return { status: "completed", ...(payloads && { output: plainJson(decodeData("RunCompleted", data).output) }) };
    case "cancelled": {
      const { reason, terminated } = decodeData("RunCancelled", data);
      return {
        status: "cancelled",
        ...(terminated === true && { terminated }),
        ...(payloads && reason !== undefined && { reason }),
      };
    }
    case "budget":
      return { status: "waiting" };
    default:
      return { status: event?.kind };
  }
}

async function promiseData(message: ClaimedMessage, { payloads, link }: WebhookEndpoint): Promise<object> {
  const { runId: run, event } = message;
  const { promiseId, key, show, timeout } = decodeData("PromiseCreated", message.data);
  const port = promiseNameOf({ promiseId, ...(key !== undefined && { key }) });
  const deadline = timeout === undefined || event === undefined ? undefined : new Date(event.at + timeout);
  const opened: OpenedPromise = {
    run,
    definition: event?.definition ?? "",
    port,
    ...(key !== undefined && { key }),
    ...(deadline !== undefined && { deadline }),
  };
  return {
    port,
    ...(key !== undefined && { key }),
    ...(deadline !== undefined && { deadline: deadline.toISOString() }),
    ...(payloads && show !== undefined && { show: plainJson(show) }),
    ...(link !== undefined && (await linkOf(link, opened))),
  };
}

/** By the time of a later delivery the promise may have its answer: the event then has no link. */
async function linkOf(link: NonNullable<WebhookEndpoint["link"]>, opened: OpenedPromise): Promise<{ link?: string }> {
  try {
    return { link: await link(opened) };
  } catch (error) {
    if (error instanceof RepriseError && NO_LINK.has(error.code)) return {};
    throw error;
  }
}

const NO_LINK: ReadonlySet<string> = new Set(["RUN_ENDED", "RUN_NOT_FOUND", "PROMISE_ALREADY_RESOLVED", "LINK_CLOSED"]);
