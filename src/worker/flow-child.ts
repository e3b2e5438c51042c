// Creates the child run that a node of a flow waits for.

import { digest, encode, RepriseError } from "../base/index.ts";
import type { ModelNames, NewChild, TraceContext } from "../kernel/index.ts";
import { entryData, type ChildRequest } from "../workflow/index.ts";
import { childRun } from "../process/index.ts";
import type { PartsOf } from "./worker-parts.ts";
import type { StartedChild } from "./run-flow-node.ts";

/** Validates the input as `ctx.child` does. */
export function newFlowChild(
  { eagerClaims, options, registry }: PartsOf<"eagerClaims" | "options" | "registry">,
  { definition, input }: StartedChild,
  id: string,
  command: string,
  trace: TraceContext | undefined,
  models?: ModelNames,
): { readonly data: string; readonly child: NewChild } {
  const accepted = registry.acceptChild(definition, input);
  if (accepted === undefined)
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `Node ${command} calls ${definition.name}, which is not registered in this process. Add it to \`definitions\`, or export it from the file that \`reprise worker\` loads.`,
    );
  const text = entryData.encodeNamed(`The input of ${command}`, accepted.input);
  const data = entryData.childInitiatedData({
    index: 0,
    childExecutionId: id,
    childExecutionName: definition.name,
    childWorkflowKind: definition.kind,
    input: text,
    given: digestOfInput(input),
  });
  const { slot } = accepted;
  const request: ChildRequest = {
    kind: "child",
    command,
    data,
    definition,
    childId: id,
    input: text,
    detached: false,
    slot,
    deadlineMs: undefined,
    models,
  };
  const claim = eagerClaims.claimChild(request);
  const taken = { type: "ChildWorkflowFailed", target: command, data: entryData.childIdTakenData(id) } as const;
  return {
    data,
    child: { run: childRun(options, request, trace), command, detached: false, taken, ...(claim && { claim }) },
  };
}

/** A replay compares it, without the schema of the callee. Undefined if only the schema makes the input data. */
function digestOfInput(input: unknown): string | undefined {
  try {
    return digest(encode(input));
  } catch {
    return undefined;
  }
}
