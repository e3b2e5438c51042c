// Read picture: the picture of a run, from its journal and its open work, with the code of its definition.

import { RepriseError } from "../base/index.ts";
import type { RunPicture } from "../contract/index.ts";
import { rowsOf } from "../explain/index.ts";
import { describeFlowBody, type FlowBody } from "../flow/index.ts";
import type { GraphDescription } from "../graph/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import { pictureOfFlow, pictureOfGraph } from "./definition-picture.ts";
import { graphTrails } from "./graph-trail.ts";
import { readRowFacts } from "./read-timeline.ts";
import { drawFlow, drawGraph, type DrawnRun } from "./run-picture.ts";
import { runFolds } from "./run-fold.ts";
import { rawRowsOf } from "./timeline-rows.ts";

/** The code that a picture needs. */
export type Drawable =
  | { readonly kind: "graph"; readonly described: GraphDescription }
  | { readonly kind: "flow"; readonly body: FlowBody };

/** `step`: of a graph, as it was after this step. */
export async function readRunPicture(
  store: Store,
  given: RunRecord,
  drawable: Drawable,
  step?: number,
): Promise<RunPicture> {
  if (drawable.kind === "flow" && step !== undefined)
    throw new RepriseError("USAGE", `Run ${given.id} is a run of a flow, which has no steps. Leave out the step.`, {
      details: { status: 400 },
    });
  return drawable.kind === "graph"
    ? readGraphPicture(store, given, drawable.described, step)
    : readFlowPicture(store, given, drawable.body);
}

async function readGraphPicture(
  store: Store,
  record: RunRecord,
  described: GraphDescription,
  step?: number,
): Promise<RunPicture> {
  // Before the steps: a node that ends in between is shown in the step that committed it.
  const rows = step === undefined ? rawRowsOf(await readRowFacts(store, record, undefined)) : [];
  const trail = await graphTrails.read(store, record);
  const last = trail.steps.at(-1)?.step;
  if (step !== undefined && (last === undefined || step > last))
    throw new RepriseError("CHECKPOINT_NOT_FOUND", `Run ${record.id} has no committed checkpoint of step ${step}.`, {
      details: { run: record.id, step },
    });
  const drawn = drawGraph({ picture: pictureOfGraph(described), described, record, trail, rows, step });
  const shown = step ?? last;
  return { ...bodyOf(record, "graph", last !== undefined, drawn), ...(shown !== undefined && { step: shown }) };
}

async function readFlowPicture(store: Store, given: RunRecord, body: FlowBody): Promise<RunPicture> {
  // flow-run.F1
  const readiness = await store.readReadiness(given.run);
  const record = (await store.findRun(given.id, given.generation)) ?? given;
  const { flow } = await runFolds.read(store, record);
  const reader = flow!;
  const rows = await rowsOf(store, record, reader, readiness);
  const picture = pictureOfFlow(describeFlowBody(body));
  const tookMs = (node: string): number | undefined => reader.ended.get(node)?.entry.tookMs;
  const hasStarted = rows.length > 0 || record.status === "completed";
  return bodyOf(record, "flow", hasStarted, drawFlow({ picture, record, rows, body, tookMs }));
}

function bodyOf(
  { id, definition, version, status }: RunRecord,
  kind: RunPicture["kind"],
  started: boolean,
  drawn: DrawnRun,
): RunPicture {
  return { id, definition, version, kind, status, started, ended: status === "completed", ...drawn };
}
