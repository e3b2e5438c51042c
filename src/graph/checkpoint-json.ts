// Checkpoint JSON: the exchange format of work items and checkpoints of seed 000, for other programs and languages.
//
// checkpoint-json.J1. `order_key` and `rng_seed` are bare numbers with all their digits, in both directions (rules.G2).
// checkpoint-json.J2. Reading a written text gives an equal value. A value that would not survive is rejected when written.
// checkpoint-json.J3. State, requests and responses are payloads as in the journal: plain JSON, with `$` tags for values
//   that JSON lacks.
// checkpoint-json.J4. A text without `version` has version 1, the version that is written. A newer version is rejected.

import { checkName, checkRunId, encode, RepriseError } from "../base/index.ts";
import type { Checkpoint, WorkItem } from "./checkpoint-view.ts";
import { JsonFields, MAX_JSON_LENGTH, parseExactly } from "./exact-json.ts";
import type { RecordedIO } from "./recorded-io.ts";

const VERSION = 1;
const UINT64 = 2n ** 64n - 1n;
const INT64 = 2n ** 63n;

/** Options of `checkpointToJson`. */
export interface CheckpointJsonOptions {
  /**
   * Whether every item of the frontier repeats the state, as other programs expect; default true. With false, readers use
   * the state of the checkpoint, which keeps a wide frontier over a large state small.
   */
  itemState?: boolean;
}

/**
 * Encodes a work item as JSON text.
 *
 * @example
 * ```ts
 * import { workItemFromJson, workItemToJson } from "reprise/checkpoints";
 * const item = workItemFromJson(
 *   '{"step_id":42,"order_key":18446744073709551615,"node_id":"ask","state":{},"attempt":0,"parent_node_id":"","edge_index":0}',
 * );
 * console.log(item.orderKey === 2n ** 64n - 1n, workItemToJson(item));
 * ```
 */
export function workItemToJson(item: WorkItem): string {
  return textOf(itemJson(item, true), "work item");
}

/**
 * Decodes a work item from JSON text. Throws BAD_FORMAT for anything else.
 *
 * @example
 * ```ts
 * import { workItemFromJson } from "reprise/checkpoints";
 * const nodeOf = (text: string): string => workItemFromJson(text).node;
 * ```
 */
export function workItemFromJson(text: string): WorkItem {
  const what = "work item";
  return readItem(what, "", parseExactly(text, what), undefined);
}

/**
 * Encodes a checkpoint and its recorded calls as JSON text. Read the checkpoint with `run.checkpoint(step)`.
 *
 * @example
 * ```ts
 * import type { Run } from "reprise";
 * import { checkpointToJson } from "reprise/checkpoints";
 * const save = async (run: Run<any>, step: number): Promise<string> => checkpointToJson(await run.checkpoint(step));
 * ```
 */
export function checkpointToJson(checkpoint: Checkpoint, options: CheckpointJsonOptions = {}): string {
  const { runId, step, state, frontier, rngSeed, recordedIO, idempotencyKey, timestamp, label } = checkpoint;
  if (recordedIO === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      "checkpointToJson: the checkpoint was read without its recorded calls. Read it with run.checkpoint(step), or with run.checkpoints({ recordedIO: true }).",
    );
  const json = {
    run_id: runId,
    step_id: step,
    state: dataJson(state),
    frontier: frontier.map((item) => itemJson(item, options.itemState !== false)),
    rng_seed: exact(rngSeed, -INT64, INT64 - 1n, "rngSeed"),
    recorded_ios: recordedIO.map((call) => callJson(call, step)),
    idempotency_key: idempotencyKey,
    timestamp: timeJson(timestamp),
    ...(label !== undefined && { label }),
  };
  return textOf(json, "checkpoint");
}

/**
 * Decodes a checkpoint from JSON text. Throws BAD_FORMAT for anything else.
 *
 * @example
 * ```ts
 * import { checkpointFromJson } from "reprise/checkpoints";
 * const stateOf = (text: string): unknown => checkpointFromJson(text).state;
 * ```
 */
export function checkpointFromJson(text: string): Checkpoint {
  const what = "checkpoint";
  const fields = new JsonFields(what, "", parseExactly(text, what));
  fields.version(VERSION);
  const runId = checkRunId(fields.text("run_id"));
  const step = fields.count("step_id");
  const state = fields.data("state");
  const frontier = fields.list("frontier").map((item, index) => readItem(what, `frontier[${index}]`, item, { state }));
  const rngSeed = fields.integer("rng_seed", -INT64, INT64 - 1n);
  const calls = new Map<string, number>();
  const recordedIO = fields
    .list("recorded_ios")
    .map((call, index) => readCall(what, `recorded_ios[${index}]`, call, step, calls));
  const idempotencyKey = fields.text("idempotency_key");
  if (idempotencyKey === "") throw fields.refuse("idempotency_key", "is empty");
  const timestamp = fields.time("timestamp");
  // Other languages write an empty label for none.
  const label = fields.text("label", "");
  fields.end();
  return {
    runId,
    step,
    state,
    frontier,
    rngSeed,
    recordedIO,
    idempotencyKey,
    timestamp,
    ...(label !== "" && { label: checkName(label, "checkpoint label") }),
  };
}

function itemJson(item: WorkItem, withState: boolean): object {
  const { step, orderKey, node, attempt, parentNode, edgeIndex, spreadIndex } = item;
  return {
    step_id: step,
    order_key: exact(orderKey, 0n, UINT64, "orderKey"),
    node_id: node,
    ...(withState && { state: dataJson(item.state) }),
    attempt,
    parent_node_id: parentNode,
    edge_index: edgeIndex,
    ...(spreadIndex !== undefined && { spread_index: spreadIndex, item: dataJson(item.item) }),
  };
}

/** In a checkpoint, `whole` has the state for items without one. */
function readItem(
  what: string,
  path: string,
  value: unknown,
  whole: { readonly state: unknown } | undefined,
): WorkItem {
  const fields = new JsonFields(what, path, value);
  if (whole === undefined) fields.version(VERSION);
  const item = {
    step: fields.count("step_id"),
    orderKey: fields.integer("order_key", 0n, UINT64),
    node: checkName(fields.text("node_id"), `${what}, ${fields.at("node_id")}`),
    state: whole !== undefined && !fields.has("state") ? whole.state : fields.data("state"),
    attempt: fields.count("attempt"),
    // The example checkpoint of the seed leaves these out.
    parentNode: fields.text("parent_node_id", ""),
    edgeIndex: fields.count("edge_index", 0),
    ...(fields.has("spread_index") && { spreadIndex: fields.count("spread_index"), item: fields.data("item") }),
  };
  fields.end();
  return item;
}

function callJson(call: RecordedIO, step: number): object {
  const { node, attempt, name, path, hash, at, durationMs } = call;
  return {
    node_id: node,
    attempt,
    ...("request" in call && { request: dataJson(call.request) }),
    ...("error" in call ? { error: dataJson(call.error) } : { response: dataJson(call.response) }),
    hash,
    timestamp: timeJson(at),
    ...(durationMs !== undefined && { duration_ms: durationMs }),
    call_index: call.call,
    name,
    ...(path !== undefined && { path }),
    ...(call.step !== step && { step_id: call.step }),
  };
}

function readCall(what: string, path: string, value: unknown, step: number, calls: Map<string, number>): RecordedIO {
  const fields = new JsonFields(what, path, value);
  const node = fields.text("node_id");
  const attempt = fields.count("attempt");
  const place = JSON.stringify([node, attempt]);
  const earlier = calls.get(place) ?? 0;
  const call = fields.count("call_index", earlier);
  calls.set(place, call + 1);
  const read: RecordedIO = {
    step: fields.count("step_id", step),
    node,
    path: fields.has("path") ? fields.text("path") : undefined,
    attempt,
    call,
    name: fields.text("name", ""),
    ...(fields.has("request") && { request: fields.data("request") }),
    ...(fields.has("error") ? { error: fields.data("error") } : { response: fields.data("response") }),
    hash: fields.text("hash"),
    at: fields.time("timestamp"),
    durationMs: fields.milliseconds("duration_ms"),
  };
  fields.end();
  return read;
}

function exact(value: bigint, least: bigint, most: bigint, name: string): unknown {
  if (typeof value !== "bigint" || value < least || value > most)
    throw new RepriseError("BAD_OPTIONS", `${name}: expected a bigint from ${least} to ${most}, got ${String(value)}.`);
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(value));
}

/** checkpoint-json.J3 */
function dataJson(value: unknown): unknown {
  return JSON.parse(encode(value));
}

function timeJson(time: Date): string {
  return time.toISOString().replace(".000Z", "Z");
}

function textOf(json: object, what: string): string {
  let text: string;
  try {
    text = JSON.stringify(json);
  } catch (cause) {
    throw new RepriseError("PAYLOAD_TOO_LARGE", `The ${what} is too large for one JSON text.`, { cause });
  }
  if (text.length <= MAX_JSON_LENGTH) return text;
  throw new RepriseError(
    "PAYLOAD_TOO_LARGE",
    `The ${what} has ${text.length} characters as JSON; the limit is ${MAX_JSON_LENGTH}. For a wide frontier, leave out the state of its items: { itemState: false }.`,
  );
}
