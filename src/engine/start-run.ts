// start: one run from a definition, an input and options.

import { checkRunId, decode, encode, RepriseError } from "../base/index.ts";
import {
  checkBudget,
  checkDeadline,
  commandForkOriginOf,
  forkOriginOf,
  parse,
  queueSlotOf,
  traceContextOf,
  type Redaction,
  type RunRecord,
  type RunStartedData,
  type StartOutcome,
} from "../kernel/index.ts";
import { newRun, startSpan } from "../process/index.ts";
import { entryData, type WorkflowBody } from "../workflow/index.ts";
import type { RunHandleHost } from "./run-handle.ts";
import { sendAll, signalsOf } from "./run-messages.ts";
import { checkBeginning, checkOptions, checkStart } from "./start-options.ts";

/** client-core.N1: everything is checked before the write. */
export async function startRun(
  host: RunHandleHost,
  body: WorkflowBody,
  given: unknown,
  givenOptions: unknown,
): Promise<RunRecord> {
  const { worker, runtime, limits, newSalt, redaction } = host;
  const options = checkOptions(givenOptions);
  const { tags, priority } = checkStart(options);
  const beginning = checkBeginning(options);
  const id = options.id === undefined ? host.newId() : checkRunId(options.id);
  const parsed = await parse(body.schema, given, `${body.kind} ${body.name}`);
  const input = entryData.encodeNamed(`The input of ${body.kind} ${body.name}`, parsed, limits);
  const slot = queueSlotOf(body.slotOptions, parsed, `${body.kind} ${body.name}`);
  const messages = await signalsOf(body, options.signals, limits);
  const deadlineMs = options.deadline === undefined ? body.deadlineMs : checkDeadline(options.deadline, "start");
  const budget = options.budget === undefined ? undefined : checkBudget(options.budget, "start");
  const { singleton } = beginning;
  const trace = options.trace && traceContextOf(options.trace.parent, options.trace.state);
  const admitted = host.starts.enter();
  if (admitted !== undefined) await admitted;
  let claim: ReturnType<typeof worker.claimEagerly>;
  let outcome: StartOutcome;
  try {
    options.signal?.throwIfAborted();
    const isDelayed = slot !== undefined || beginning.delayMs !== undefined;
    claim = isDelayed ? undefined : worker.claimEagerly(body);
    const span = startSpan(host, body, id, { parent: trace });
    const run = newRun(body, {
      id,
      input,
      tags,
      priority,
      slot,
      singleton,
      runtime,
      payloadLimit: limits?.maxBytes,
      salt: newSalt?.(),
      deadlineMs,
      budget,
      trace,
      span,
    });
    outcome = await worker.submit({
      write: "start",
      run,
      ...(claim && { claim }),
      ...(messages.length > 0 && { messages }),
      ...beginning,
    });
  } finally {
    host.starts.leave();
  }
  const { record } = outcome;
  if (outcome.status === "started" && claim !== undefined) worker.adopt(record, outcome.first, claim.token);
  else worker.wake();
  if (outcome.status === "exists" || outcome.status === "other_definition")
    checkSameStart(outcome, body.name, input, redaction);
  if (outcome.status !== "started") await sendAll({ host, body, id: record.id }, messages);
  if (deadlineMs !== undefined) worker.dueAt(record.createdAt + deadlineMs);
  return record;
}

/** client-core.N2 */
function checkSameStart(
  outcome: StartOutcome,
  definition: string,
  input: string | undefined,
  redaction: Redaction,
): void {
  const { record } = outcome;
  const started = outcome.status === "other_definition" ? undefined : (decode(outcome.first.data) as RunStartedData);
  const present = entryData.encodeInput(started?.input);
  const origin = started && (forkOriginOf(started) ?? commandForkOriginOf(started));
  if (record.definition === definition && present === input && origin === undefined) return;
  const [expected, actual] =
    origin !== undefined
      ? [
          `a fork from ${"at" in origin ? origin.at : `step ${origin.step}`} of run ${origin.run}`,
          "an input of its own",
        ]
      : record.definition === definition
        ? [`input ${shorten(redacted(present, redaction))}`, `input ${shorten(redacted(input, redaction))}`]
        : [`definition ${record.definition}`, `definition ${definition}`];
  throw new RepriseError(
    "START_CONFLICT",
    `Run ${record.id} exists ${origin === undefined ? "with" : "as"} ${expected}; it cannot be started again with ${actual}. Use another id, or engine.get to get the existing run.`,
    { details: { run: record.id, expected, actual } },
  );
}

function redacted(text: string | undefined, redaction: Redaction): string | undefined {
  return text === undefined ? undefined : encode(redaction.data(decode(text)));
}

function shorten(text = encode(undefined)): string {
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}
