// A child that a node of a flow waits for.

import { RepriseError } from "../base/index.ts";
import type { NewChild } from "../kernel/index.ts";
import { entryData, type ChildAsk } from "../workflow/index.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import type { StartedChild } from "./node-work.ts";
import type { Registry } from "./registry.ts";

type Host = Pick<HotRunHost, "newChild" | "preclaimChild">;

/** Its input is checked as `ctx.child` would; the entry says who it is. */
export function newFlowChild(
  host: Host,
  registry: Registry,
  { definition, input }: StartedChild,
  id: string,
  command: string,
): { readonly data: string; readonly child: NewChild } {
  const accepted = registry.acceptChild(definition, input);
  if (accepted === undefined)
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `The flow calls ${definition.name}, which is not registered. Add it to \`definitions\` of createEngine and resume the run.`,
    );
  const text = entryData.encodeNamed(`The input of ${command}`, accepted.input);
  const data = entryData.childInitiatedData({
    index: 0,
    childExecutionId: id,
    childExecutionName: definition.name,
    childWorkflowKind: definition.kind,
    input: text,
    given: undefined,
  });
  const { line } = accepted;
  const ask: ChildAsk = {
    ask: "child",
    command,
    data,
    definition,
    childId: id,
    input: text,
    detached: false,
    line,
    deadlineMs: undefined,
  };
  const claim = host.preclaimChild(ask);
  const taken = { type: "ChildWorkflowFailed", target: command, data: entryData.childIdTakenData(id) } as const;
  return { data, child: { run: host.newChild(ask), command, detached: false, taken, ...(claim && { claim }) } };
}
