// Settlements: the value or the error that a promise of a run got, and whether a later one is the same.

import { inspect } from "node:util";
import { checkName, decode, encode, redactData, redactText, RepriseError, secretKeys } from "../base/index.ts";
import type { Arrival, MessageOutcome } from "./commit.ts";
import type { EntryData, SettleAnsweredData } from "./entry-data.ts";
import type { Ports } from "./ports.ts";
import { promiseIdOf } from "./promise-id.ts";
import { secretNeedles } from "./secrets.ts";

type Settlement = EntryData["PromiseResolved"] | EntryData["PromiseRejected"];

const SHOWN_LENGTH = 200;
const isSecret = secretKeys();

const MAX_REASON_LENGTH = 1_000;

/** What a settlement says besides its value or error. */
export interface SettlementFields {
  readonly key?: string;
  readonly by?: string;
  readonly reason?: string;
}

/** The id of the promise, and the checked fields of its settlement. */
export function checkSettlement(
  ports: Ports,
  name: string,
  { by, key, reason }: SettlementFields,
  what: string,
): { readonly id: string; readonly fields: SettlementFields } {
  const id = promiseIdOf(ports, name, key, what);
  const { by: who, reason: why } = checkAnswerer({ by, reason }, what);
  const fields = {
    ...(who !== undefined && { by: who }),
    ...(key !== undefined && { key }),
    ...(why !== undefined && { reason: why }),
  };
  return { id, fields };
}

/** Who decided, and why. */
export function checkAnswerer(
  { by, reason }: { readonly by?: string | undefined; readonly reason?: string | undefined },
  what: string,
): Pick<SettlementFields, "by" | "reason"> {
  if (by !== undefined) checkName(by, `${what}: by`);
  if (reason !== undefined && (typeof reason !== "string" || reason.length > MAX_REASON_LENGTH))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected a reason of at most ${MAX_REASON_LENGTH} characters, got ${typeof reason === "string" ? reason.length : typeof reason}.`,
    );
  return { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
}

/** A settlement that the code of a run sends to another run, and the command that waits for the answer. */
export interface SentSettlement {
  readonly command: string;
  /** The id of the other run. */
  readonly to: string;
  readonly definition: string;
  readonly arrival: Arrival;
}

/** The answer to a settlement: what became of its message. */
export function answerToSettlement({ command, to, arrival }: SentSettlement, outcome: MessageOutcome): Arrival {
  const answer: SettleAnsweredData = { runId: to, promiseId: arrival.target, ...statusOf(outcome, arrival.data) };
  return { type: "SettleAnswered", target: command, data: encode(answer) };
}

function statusOf(
  outcome: MessageOutcome,
  given: string,
): Pick<SettleAnsweredData, "status" | "as" | "definition" | "settled"> {
  switch (outcome.status) {
    case "committed":
      return { status: "accepted" };
    case "duplicate": {
      const { settled } = outcome;
      if (settled === undefined) return { status: "already_settled" };
      if (isSameSettlement(settled, given)) return { status: "repeated" };
      return { status: "already_settled", settled: decode(settled) };
    }
    case "no_run":
      return { status: "no_run" };
    case "ended":
      return { status: "ended", as: outcome.as };
    case "other_definition":
      return { status: "other_definition", definition: outcome.definition };
  }
}

/** Whether two settlements of a promise have the same value or error, as their entries store them. Callers may differ. */
export function isSameSettlement(recorded: string, given: string): boolean {
  if (recorded === given) return true;
  const [first, second] = [outcomeOf(recorded), outcomeOf(given)];
  return first !== undefined && first === second;
}

function outcomeOf(text: string): string | undefined {
  const data = decode(text);
  if (typeof data !== "object" || data === null) return undefined;
  const settled = data as Settlement;
  return "error" in settled ? `error ${encode(settled.error)}` : `value ${encode(settled.value)}`;
}

/** The refusal of a second settlement. `recorded`: the data of the first; undefined: not known. */
export function alreadySettled(promiseId: string, runId: string, recorded: string | undefined): RepriseError {
  const settled = recorded === undefined ? undefined : (decode(recorded) as Settlement);
  const how = settled === undefined ? "settled" : howSettled(settled);
  return new RepriseError(
    "PROMISE_ALREADY_RESOLVED",
    `Promise ${promiseId} of run ${runId} is already ${how}; the first value is kept.`,
    { details: { promise: promiseId, run: runId, ...whoSettled(settled) } },
  );
}

function howSettled(settled: Settlement): string {
  const { by, reason } = whoSettled(settled);
  const what = "error" in settled ? `rejected with ${shown(settled.error)}` : `resolved to ${shown(settled.value)}`;
  return `${what}${by === undefined ? "" : ` by ${by}`}${reason === undefined ? "" : ` (${reason})`}`;
}

function whoSettled(settled: Settlement | undefined): { readonly by?: string; readonly reason?: string } {
  const { by, reason } = settled ?? {};
  const needles = secretNeedles();
  return {
    ...(by !== undefined && { by: redactText(by, needles) }),
    ...(reason !== undefined && { reason: redactText(reason, needles) }),
  };
}

function shown(value: unknown): string {
  const data = redactData(value, { needles: secretNeedles(), isSecret });
  const text =
    data instanceof Error
      ? `${data.name}: ${data.message}`
      : inspect(data, { depth: 4, breakLength: Number.POSITIVE_INFINITY });
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text;
}
