// Tasks: runs as tasks of MCP (extension `io.modelcontextprotocol/tasks`, 2026-07-28).
//
// tasks.T1. The id of a task is the id of its run, and its state is read from the run: a task survives whatever the run survives, and every
//   server of the store answers for it.
// tasks.T2. Open promises that the client can answer make the task `input_required`, one request per (port, key). A client that did not
//   declare elicitation, or may not answer promises, sees `working` and a message that says what the run waits for.
// tasks.T3. A run that failed is a task that `completed` with an error of the tool, as the extension demands; `failed` is a run that the
//   engine has stopped, with the command that helps.

import { approvalAnswer, type OpenPromiseBody, type RunDetail } from "../../contract/index.ts";
import { hasEnded } from "../../kernel/index.ts";
import { isStopped } from "../routes/runs.ts";
import { formOf, type ElicitationForm } from "./elicitation-form.ts";
import { isObject, RPC_ERROR, RpcRefusal, type Params } from "./rpc.ts";
import { readRun, runResult } from "./started-run.ts";
import type { ToolCall } from "./tool.ts";
import { toolResult } from "./tool-result.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const POLL_MS = 1_000;

export interface TaskOptions {
  /** tasks.T2 */
  readonly answersPromises: boolean;
}

/** The state of a task, with its result, error or requests. */
export async function readTask(id: string, options: TaskOptions, call: ToolCall): Promise<object> {
  const run = await readRun(id, call);
  const task = {
    taskId: id,
    createdAt: run.createdAt,
    lastUpdatedAt: await lastUpdate(run, call),
    ttlMs: null,
    pollIntervalMs: POLL_MS,
  };
  if (run.status === "cancelled") return { ...task, status: "cancelled" };
  if (hasEnded(run.status))
    return { ...task, status: "completed", result: { resultType: "complete", ...toolResult(runResult(run)) } };
  // tasks.T3
  if (isStopped(run.status)) {
    const [reason] = run.waitsFor;
    const message = [reason?.text ?? `The run is ${run.status}.`, ...(reason?.next.slice(0, 1) ?? [])].join(" Next: ");
    return { ...task, status: "failed", statusMessage: message, error: { code: RPC_ERROR.internal, message } };
  }
  const asked = options.answersPromises && run.status !== "paused" ? await askedPromises(run, call) : [];
  if (asked.length > 0)
    return {
      ...task,
      status: "input_required",
      inputRequests: Object.fromEntries(asked.map(({ key, form }) => [key, form.request])),
    };
  const statusMessage = messageOf(run);
  return { ...task, status: "working", ...(statusMessage !== undefined && { statusMessage }) };
}

function messageOf({ status, waitsFor }: RunDetail): string | undefined {
  if (status === "paused") return "The run is paused.";
  return waitsFor[0]?.text;
}

async function lastUpdate(run: RunDetail, { operations, caller, signal }: ToolCall): Promise<string> {
  if (run.endedAt !== undefined) return run.endedAt;
  const page = (await operations.call(
    "listJournal",
    caller,
    { params: { id: run.id }, query: { limit: 1, order: "last" } },
    signal,
  )) as { readonly items: readonly { readonly at: string }[] };
  return page.items[0]?.at ?? run.createdAt;
}

// ── input ──

interface AskedPromise {
  readonly key: string;
  readonly promise: OpenPromiseBody;
  readonly form: ElicitationForm;
  readonly schema: unknown;
}

/** What this server can ask a person for. A request for a budget is no promise of the code: an operator raises it, or declines. */
async function askedPromises(run: RunDetail, call: ToolCall): Promise<readonly AskedPromise[]> {
  const open = run.openPromises.filter((one) => one.kind === "promise");
  if (open.length === 0) return [];
  const schemas = await portSchemas(run.definition, call);
  return open.map((promise) => {
    const schema = schemas.get(promise.name);
    return { key: requestKey(promise), promise, schema, form: formOf(run, promise, schema) };
  });
}

/** A promise is settled once, so its key is never used for another request. */
function requestKey({ name, key }: OpenPromiseBody): string {
  return key === undefined ? name : `${name}/${key}`;
}

async function portSchemas(
  definition: string,
  { operations, caller, signal }: ToolCall,
): Promise<ReadonlyMap<string, unknown>> {
  const { ports } = (await operations.call("getDefinition", caller, { params: { name: definition } }, signal)) as {
    readonly ports: readonly { readonly name: string; readonly schema?: unknown }[];
  };
  return new Map(ports.map(({ name, schema }) => [name, schema]));
}

/** Answers the promises that responses name. Others are ignored, as the extension says: they are settled, or were never asked for. */
export async function updateTask(id: string, responses: unknown, call: ToolCall): Promise<void> {
  if (!isObject(responses)) throw new RpcRefusal(RPC_ERROR.params, "inputResponses: expected an object.");
  const asked = await askedPromises(await readRun(id, call), call);
  // All are read before the first is sent.
  const answers = asked.flatMap((one) => {
    const response = Object.hasOwn(responses, one.key) ? responses[one.key] : undefined;
    return response === undefined ? [] : [{ one, body: answerBody(one, response, call) }];
  });
  for (const { one, body } of answers) {
    if (body === undefined) continue;
    const { name: port, key } = one.promise;
    const params = { id, port, ...(key !== undefined && { key }) };
    const operation = key === undefined ? "settlePromise" : "settleKeyedPromise";
    await call.operations.call(operation, call.caller, { params, body }, call.signal);
  }
}

/** Undefined: the person gave no answer, so the promise stays open. */
function answerBody({ key, form, schema }: AskedPromise, response: unknown, { caller }: ToolCall): Params | undefined {
  const { action, content } = isObject(response) ? response : {};
  switch (action) {
    case "accept": {
      const found = form.valueOf(isObject(content) ? content : {});
      if ("value" in found) return { value: found.value };
      throw new RpcRefusal(RPC_ERROR.params, `inputResponses.${key}: ${found.problem}`);
    }
    case "decline": {
      const answer = approvalAnswer(schema, false, { by: caller.name });
      return answer === undefined ? { reject: `${caller.name} declined` } : { value: answer.value };
    }
    case "cancel":
      return undefined;
    default:
      throw new RpcRefusal(RPC_ERROR.params, `inputResponses.${key}.action: expected accept, decline or cancel.`);
  }
}
