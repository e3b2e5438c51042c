// Stream page: frames of a stream with their offsets, as one answer of bounded size.
//
// stream-page.P1. The caller needs what the operation `readStream` needs: its role and scopes are checked here, because the operation answers
//   with bytes that have no offset per frame.

import { decode } from "../../base/index.ts";
import { integer, object, optional, streamOperations, text } from "../../contract/index.ts";
import { hasEnded, type Chunk } from "../../kernel/index.ts";
import { hasRole, roleRequired } from "../auth/role.ts";
import { checkScope } from "../auth/scope.ts";
import type { Caller, ServerHost } from "../host.ts";
import { getLiveReads } from "../live/hub-of.ts";
import { accessOf } from "../read/view.ts";
import { payloadToWire } from "../wire-payload.ts";
import { MAX_ANSWER_BYTES } from "./fit-answer.ts";
import type { Params } from "./rpc.ts";
import type { ToolCall } from "./tool.ts";

const FRAMES = 100;

export const STREAM_ARGUMENTS = object({
  run: text({ minLength: 1, description: "The id of the run." }),
  stream: text({ minLength: 1, description: "The name of the stream; `run_show` lists them." }),
  after: optional(integer({ minimum: 0, description: "`next` of the answer before; default: from the start." })),
  limit: optional(integer({ minimum: 1, maximum: 1000, default: FRAMES })),
});

/** Which frames: those behind an offset. */
export interface FrameRange {
  readonly run: string;
  readonly stream: string;
  readonly after?: number;
  readonly limit?: number;
}

export interface FramePage {
  readonly chunks: readonly Chunk[];
  /** The offset of the last one. */
  readonly next: number;
  /** There are more behind it. */
  readonly more: boolean;
  /** The run has ended, and this is the last of the stream. */
  readonly ended: boolean;
}

/** stream-page.P1. Frames up to the limit and to what one answer holds. */
export async function readFrames(host: ServerHost, caller: Caller, range: FrameRange): Promise<FramePage> {
  const { run: id, stream: name, after = 0, limit = FRAMES } = range;
  const operation = streamOperations.readStream;
  if (operation.role !== "public" && !hasRole(caller, operation.role))
    throw roleRequired("readStream", operation.role, caller);
  await checkScope({ operation, caller, params: { id, name }, body: undefined, host });
  const { run } = await getLiveReads(host).findStream(id, name);
  // First: a run that ends after this read may have added frames that the page does not have.
  const record = await host.store.findRun(id);
  const found = await host.store.readStream(run, name, after, limit + 1);
  const chunks = withinAnswer(found.slice(0, limit));
  const more = chunks.length < found.length;
  return {
    chunks,
    next: chunks.at(-1)?.offset ?? after,
    more,
    ended: !more && (record === undefined || hasEnded(record.status)),
  };
}

/** At least one, which is cut if it is too long. */
function withinAnswer(chunks: readonly Chunk[]): readonly Chunk[] {
  let bytes = 0;
  const end = chunks.findIndex(({ data }) => (bytes += Buffer.byteLength(data) + 100) > MAX_ANSWER_BYTES / 2);
  return end === -1 ? chunks : chunks.slice(0, Math.max(1, end));
}

/** The page as the answer of a tool: redacted. A reset voids the values of its step before it. */
export async function readStreamPage(args: Params, { caller, operations }: ToolCall): Promise<object> {
  const host = await operations.host();
  const range = args as unknown as FrameRange;
  const { chunks, ...page } = await readFrames(host, caller, range);
  const { redaction } = accessOf(host);
  return {
    run: range.run,
    stream: range.stream,
    frames: chunks.map(({ offset, data, step, execution, reset }) => ({
      offset,
      ...(step !== undefined && { step, execution: execution ?? 1 }),
      ...(reset === true ? { reset: true } : { value: payloadToWire(redaction.data(decode(data)), "plain") }),
    })),
    ...page,
  };
}
