// Flow run body: a flow as the engine starts it. It has no workflow function.

import { RepriseError } from "../base/index.ts";
import type { Definition } from "../kernel/index.ts";
import type { WorkflowBody } from "../workflow/index.ts";
import { flowBody, type FlowBody } from "./definition.ts";
import { replayFlow } from "./replay.ts";

const bodies = new WeakMap<FlowBody, WorkflowBody>();

export function flowRunBody(definition: Definition): WorkflowBody {
  const body = flowBody(definition);
  let made = bodies.get(body);
  if (made === undefined)
    bodies.set(
      body,
      (made = {
        kind: "flow",
        name: body.name,
        version: body.version,
        run: () => Promise.reject(new RepriseError("INVARIANT", "A flow has no workflow function.")),
        replay: async ({ entries, chain, host, onDelivery }) =>
          replayFlow(body, entries, chain, { onDelivery, onPure: host.onPureCall }),
        schema: body.schema,
        ports: {},
        determinism: undefined,
        slotOptions: undefined,
        label: body.label,
        deadlineMs: body.deadlineMs,
        retention: body.retention,
        budget: body.budget,
      }),
    );
  return made;
}
