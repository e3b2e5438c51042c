// Fork answers: checks the values that a fork gets instead of recorded answers, before the fork is written (fork.F6).

import { inspect } from "node:util";
import { RepriseError } from "../base/index.ts";
import {
  commandTypeOf,
  decodeData,
  parse,
  promiseNameOf,
  stableCommandOf,
  type Arrival,
  type Entry,
  type RunRecord,
  type Schema,
} from "../kernel/index.ts";
import { entryData, overridePromise, type WorkflowBody } from "../workflow/index.ts";
import type { RunHandleHost } from "./run-handle.ts";

/** The answers as they are stored, and the promises that they settle. */
export interface CheckedAnswers {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly settled: readonly Arrival[];
}

/** `place`: where the fork begins, and whether a command was answered before that. */
export async function checkAnswers(
  { registry, limits }: RunHandleHost,
  { id, definition, version }: RunRecord,
  history: readonly Entry[],
  place: { readonly at: string; isBefore(command: string): boolean },
  given: Readonly<Record<string, unknown>> = {},
): Promise<CheckedAnswers> {
  const answers: Record<string, unknown> = {};
  const settled: Arrival[] = [];
  const body = registry.findWorkflow(definition, version);
  for (const [command, value] of Object.entries(given)) {
    if (place.isBefore(command))
      throw new RepriseError(
        "BAD_OPTIONS",
        `fork: ${command} of run ${id} was answered before ${place.at}, where the fork begins. Fork earlier to change its answer.`,
        { details: { run: id, command } },
      );
    const opening = history.findLast(
      (entry) => entry.type === "PromiseCreated" && stableCommandOf(entry.command) === command,
    );
    const override = await checkAnswer(body, command, opening, value);
    entryData.encodeNamed(`The answer of ${command}`, override, limits);
    answers[command] = override;
    const arrival = opening && overridePromise(decodeData("PromiseCreated", opening.data), override);
    if (arrival?.type === "PromiseResolved") settled.push(arrival);
  }
  return { answers, settled };
}

/** The value as the definition's schema parses it, where there is one. */
async function checkAnswer(
  body: WorkflowBody | undefined,
  command: string,
  opening: Entry | undefined,
  value: unknown,
): Promise<unknown> {
  const type = commandTypeOf(command);
  if (type === "Settle")
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: the answer of ${command} comes from another run and cannot be replaced.`,
    );
  if (type === "Timer" && value !== undefined && value !== null)
    throw new RepriseError("BAD_INPUT", `fork: ${command} is a timer; its answer is undefined, got ${inspect(value)}.`);
  if (type === "Node") return checkChanges(body, command, value);
  if (opening === undefined) return value;
  const created = decodeData("PromiseCreated", opening.data);
  const { receives } = created;
  const parsed = (port: string, one: unknown): Promise<unknown> =>
    parse(
      (body?.ports[port] as { readonly schema?: Schema<never, unknown> } | undefined)?.schema,
      one,
      `fork: ${command}`,
    );
  if (receives === undefined) return parsed(promiseNameOf(created), value);
  if (receives.length === 1) return parsed(receives[0]!, value);
  const { name, value: signal } = (value ?? {}) as { readonly name?: unknown; readonly value?: unknown };
  if (typeof name !== "string" || !receives.includes(name))
    throw new RepriseError(
      "BAD_INPUT",
      `fork: ${command} waits for one of the signals ${receives.join(", ")}; expected { name, value } as its answer, got ${inspect(value, { depth: 0 })}.`,
    );
  return { name, value: await parsed(name, signal) };
}

/** What a node returns: values by channel. */
function checkChanges(body: WorkflowBody | undefined, command: string, value: unknown): unknown {
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_INPUT", `fork: ${command} is a node; ${problem}.`, { details: { command } });
  };
  if (value === undefined) return value;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refuse(`expected changes of channels by name as its answer, got ${inspect(value, { depth: 0 })}`);
  for (const [channel, change] of Object.entries(value)) {
    if (body?.channels !== undefined && ![...body.channels].includes(channel))
      refuse(`it cannot change ${channel}; the channels are: ${[...body.channels].join(", ") || "none"}`);
    const wrong = body?.checkChannel?.(channel, change);
    if (wrong !== undefined) refuse(`the channel ${channel} ${wrong}`);
  }
  return value;
}
