// Started run: a run as the result of a tool: its output, its error, or that it continues.

import type { RunDetail } from "../../contract/index.ts";
import { hasEnded } from "../../kernel/index.ts";
import { isStopped } from "../routes/runs.ts";
import type { Params } from "./rpc.ts";
import type { ToolCall } from "./tool.ts";

/** How long a call waits for the end of the run that it started. */
export const WAIT_SECONDS = 20;

/** The result of a tool that is an error of the tool, not of the protocol. */
export class ToolFailure {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

/** Starts a run; the answer is its id when the start is durable. */
export async function startRun(definition: string, args: Params, call: ToolCall): Promise<string> {
  const { operations, caller, signal } = call;
  const input = { params: { name: definition }, body: args };
  const { id } = (await operations.call("startRun", caller, input, signal)) as { readonly id: string };
  return id;
}

export async function startAndWait(definition: string, args: Params, call: ToolCall): Promise<unknown> {
  const id = await startRun(definition, args, call);
  await waitForEnd(id, call);
  return runResult(await readRun(id, call));
}

export async function readRun(id: string, { operations, caller, signal }: ToolCall): Promise<RunDetail> {
  return (await operations.call("getRun", caller, { params: { id } }, signal)) as RunDetail;
}

/** How the run ended is read afterwards, in the form that redacts. */
async function waitForEnd(id: string, { operations, caller, signal }: ToolCall): Promise<void> {
  await operations
    .call("getResult", caller, { params: { id }, query: { wait: WAIT_SECONDS } }, signal)
    .catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
}

/** The run as the result of the call that started it. */
export function runResult(run: RunDetail): unknown {
  const { id, status, output, error, hidden, waitsFor } = run;
  const base = { run: id, status, ...(hidden !== undefined && { hidden }) };
  if (status === "completed") return { ...base, ...(output !== undefined && { output }) };
  if (hasEnded(status)) return new ToolFailure({ ...base, ...(error !== undefined && { error }) });
  if (isStopped(status)) return new ToolFailure({ ...base, waitsFor });
  return {
    ...base,
    note: "The run has not ended; it continues. `run_show` reads it, `run_why` says what it waits for.",
    ...(waitsFor.length > 0 && { waitsFor }),
    ...(run.openPromises.length > 0 && { openPromises: run.openPromises }),
  };
}
