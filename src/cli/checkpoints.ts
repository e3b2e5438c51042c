// reprise checkpoints: lists the committed steps of a graph's run, or prints one of them in full.

import { RepriseError } from "../base/index.ts";
import type { Checkpoint } from "../graph/index.ts";
import { checkpointToJson } from "../graph/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson, valueText } from "./output.ts";
import { redacted } from "./payload-module.ts";
import { isoOf } from "./run-format.ts";
import { Table } from "./table.ts";
import { clip, pluralize, plain, showValue, singleLine } from "./text.ts";

export interface CheckpointsCommandOptions extends GlobalOptions {
  readonly after?: number;
  readonly limit?: number;
  readonly step?: number;
  readonly label?: string;
  readonly showSecrets?: boolean;
}

/** Rows per page; the first page sets the column widths. */
const PAGE = 50;

export async function checkpoints(id: string, options: CheckpointsCommandOptions): Promise<number> {
  const at = options.label === undefined ? options.step : { label: options.label };
  if (options.label !== undefined && options.step !== undefined)
    throw new RepriseError("USAGE", "--step and --label both select a checkpoint. Pass one of them.");
  if (at !== undefined && (options.after !== undefined || options.limit !== undefined))
    throw new RepriseError(
      "USAGE",
      "--after and --limit apply to the list. Remove them, or remove --step and --label.",
    );
  return withStoreToRead(options.store, async (store) => {
    const { definition, version } = await getRun(store, id);
    return withClient(store, [placeholderDefinition(definition, {}, version)], async (engine) => {
      const run = engine.get(definition, id);
      if (at !== undefined) await printOne(visible(await run.checkpoint(at), options), options);
      else await printAll(run.checkpoints({ after: options.after ?? -1 }), id, options);
      return EXIT.ok;
    });
  });
}

/** The checkpoint without the secrets of its payloads. */
function visible(checkpoint: Checkpoint, { showSecrets }: CheckpointsCommandOptions): Checkpoint {
  if (showSecrets === true) return checkpoint;
  const state = redacted(checkpoint.state);
  return {
    ...checkpoint,
    state,
    frontier: checkpoint.frontier.map((item) => ({
      ...item,
      state,
      ...("item" in item && { item: redacted(item.item) }),
    })),
    ...(checkpoint.recordedIO && { recordedIO: checkpoint.recordedIO.map((call) => redacted(call)) }),
  };
}

async function printOne(checkpoint: Checkpoint, { json }: CheckpointsCommandOptions): Promise<void> {
  if (json) return print(singleLine(checkpointToJson(checkpoint)));
  const { runId, step, label, idempotencyKey, timestamp, rngSeed, state, frontier, recordedIO = [] } = checkpoint;
  await print(
    `${paint("bold", plain(runId))} step ${step}${label === undefined ? "" : `  ${paint("cyan", plain(label))}`}`,
  );
  await print(paint("dim", `${isoOf(timestamp)}  ${idempotencyKey}  seed ${rngSeed}`));
  await print(`\n${paint("bold", "state")}\n${valueText(state)}`);
  if (recordedIO.length > 0) await print(`\n${paint("bold", "calls")}`);
  for (const { node, attempt, name, request, response, error, durationMs } of recordedIO) {
    const took = durationMs === undefined ? "" : paint("dim", ` ${durationMs} ms`);
    // Recorded calls keep the stored attempt, which counts from 0.
    const place = `${plain(node)}${attempt === 0 ? "" : `, attempt ${attempt + 1}`} ${plain(name)}`;
    await print(`  ${place}  ${showValue(request, 60)} → ${showValue(error ?? response, 80)}${took}`);
  }
  await print(`\n${paint("bold", "next")}`);
  if (frontier.length === 0) await print("  none: the run ends here");
  for (const item of frontier)
    await print(`  ${plain(item.node)}${"item" in item ? `  ${showValue(item.item, 80)}` : ""}`);
}

async function printAll(
  all: AsyncIterable<Checkpoint>,
  id: string,
  { json, limit = Number.POSITIVE_INFINITY }: CheckpointsCommandOptions,
): Promise<void> {
  const table = new Table([
    { title: "STEP", right: true },
    { title: "RUN" },
    { title: "LABEL", minWidth: 8 },
    { title: "AT", dropOrder: 1 },
    { title: "NEXT", minWidth: 12 },
    { title: "KEY", dropOrder: 2 },
  ]);
  let rows: string[][] = [];
  let count = 0;
  const flush = async (): Promise<void> => {
    if (rows.length > 0) for (const line of table.render(rows)) await print(line);
    rows = [];
  };
  for await (const { runId, step, label, idempotencyKey, timestamp, rngSeed, frontier } of all) {
    if (count === limit) break;
    count += 1;
    if (json) {
      const next = frontier.map(({ node }) => node);
      const seed = String(rngSeed);
      await printJson({
        runId,
        step,
        label: label ?? null,
        timestamp: isoOf(timestamp),
        idempotencyKey,
        rngSeed: seed,
        next,
      });
      continue;
    }
    const key = idempotencyKey.replace("sha256:", "").slice(0, 8);
    rows.push([String(step), runId, label ?? "", isoOf(timestamp) ?? "", nextText(frontier), key]);
    if (rows.length === PAGE) await flush();
  }
  await flush();
  if (count === 0 && !json) await print(paint("dim", `run ${plain(id)} has no matching checkpoints`));
}

/** `search ×3, read` */
function nextText(frontier: Checkpoint["frontier"]): string {
  if (frontier.length === 0) return "end";
  const counts = new Map<string, number>();
  for (const { node } of frontier) counts.set(node, (counts.get(node) ?? 0) + 1);
  const names = Array.from(counts, ([node, count]) => (count === 1 ? node : `${node} ×${count}`));
  return names.length > 20 ? pluralize(frontier.length, "item", "items") : clip(names.join(", "), 200);
}
