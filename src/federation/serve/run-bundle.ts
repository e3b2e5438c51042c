// Run bundle: one run of this site's store as a bundle, also while it is running.
//
// run-bundle.B1. A peer gets the form that the rules of publication give it for that run; a store with a codec gives blind bundles only
//   (docs/decisions/0139). A run that does not exist and one that is not published have the same answer.
// run-bundle.B2. The bundle is written while the client reads it. If the store fails in between, the connection is cut: a bundle that is
//   cut off never verifies.

import { ENGINE_NAME, RepriseError } from "../../base/index.ts";
import type { RunRecord, Store } from "../../kernel/index.ts";
import { readGenerations, readRun, writeBundle, type BundleForm, type SigningKey } from "../../receipts/index.ts";
import type { Payloads } from "../sync/publish.ts";
import { notPublished, type Call, type Route } from "./route.ts";

export interface RunBundleOptions {
  /** The store of this site; undefined: it has none. */
  readonly store: Store | undefined;
  /** Signs the statements; undefined: bundles are not signed. */
  readonly key: SigningKey | undefined;
  /** What the reader may have of a run. */
  readonly payloadsFor: (call: Call, run: RunRecord) => Payloads;
}

export function runRoutes(options: RunBundleOptions): readonly Route[] {
  const path = /^\/run\/(?<id>[^/]+)$/;
  return [{ method: "GET", path, access: "visitor", handle: (call) => readBundleOf(call, options) }];
}

async function readBundleOf(call: Call, { store, key, payloadsFor }: RunBundleOptions): Promise<Response> {
  const id = idOf(call);
  const latest = await store?.findRun(id);
  const payloads = latest === undefined ? "none" : payloadsFor(call, latest);
  if (store === undefined || latest === undefined || payloads === "none" || latest.head === 0)
    throw notPublished(`There is no run ${id} here.`);
  const isEncrypted = (await store.info()).codecs.length > 0;
  const form: BundleForm = isEncrypted ? "blind" : payloads;
  const lines = linesOf(store, await readGenerations(store, id), form, key);
  const first = await lines.next();
  return new Response(streamOf(first, lines), {
    headers: { "content-type": "application/jsonl", "cache-control": "private, no-store" },
  });
}

function idOf({ params }: Call): string {
  try {
    return decodeURIComponent(params["id"]!);
  } catch (cause) {
    throw new RepriseError("BAD_FORMAT", "The id of the run in the path is not percent-encoded UTF-8.", { cause });
  }
}

async function* linesOf(
  store: Store,
  generations: readonly RunRecord[],
  form: BundleForm,
  key: SigningKey | undefined,
): AsyncGenerator<string> {
  for (const record of generations)
    for await (const line of writeBundle(await readRun(store, record), { form, key, engine: ENGINE_NAME }))
      yield `${line}\n`;
}

const CHUNK = 65_536;

/** run-bundle.B2 */
function streamOf(first: IteratorResult<string>, lines: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  let next: IteratorResult<string> | undefined = first;
  return new ReadableStream(
    {
      async pull(controller) {
        let text = "";
        let result = next ?? (await lines.next());
        next = undefined;
        for (; result.done !== true; result = await lines.next()) {
          text += result.value;
          if (text.length >= CHUNK) break;
        }
        if (text !== "") controller.enqueue(Buffer.from(text));
        if (result.done === true) controller.close();
      },
      async cancel() {
        await lines.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
