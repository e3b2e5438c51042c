// Messages to a run: signals, updates, queries, and answers of promises.

import type { AnswerOf, BodyOf, messageOperations } from "../../contract/index.ts";
import type { SettleOptions } from "../../engine/index.ts";
import type { Call, HandlersOf } from "../host.ts";
import { handleFor } from "../read/message-ports.ts";
import { needsCode } from "../read/needs-code.ts";
import { changedRun, getRecord } from "../read/run-summary.ts";
import { accessOf } from "../read/view.ts";
import { RepriseError } from "../../base/index.ts";
import { payloadFromWire, payloadToWire, type PayloadForm } from "../wire-payload.ts";

export const messageHandlers: HandlersOf<typeof messageOperations> = {
  async sendSignal(call) {
    const { host, params, body, payloads, keyId } = call;
    const name = params["name"] ?? "";
    const dedupId = body.dedupId ?? keyId;
    const run = await handleFor(host, await getRecord(call), "signal", name);
    await run.signal(
      name as never,
      payloadFromWire(body.value, payloads) as never,
      dedupId === undefined ? {} : { dedupId },
    );
    return changedRun(call);
  },
  async sendUpdate(call) {
    const { host, params, body, payloads, keyId, signal } = call;
    const name = params["name"] ?? "";
    const dedupId = body.dedupId ?? keyId;
    const run = await handleFor(host, await getRecord(call), "update", name);
    const options = { signal, ...(dedupId !== undefined && { dedupId }) };
    const args = payloadFromWire(body.args, payloads) as never;
    const answer: unknown = await run.update(name as never, args, options).catch(throwOfCode);
    return answerBody(answer, call);
  },
  async askQuery(call) {
    const { host, params, body, payloads, signal } = call;
    const record = await getRecord(call);
    const access = accessOf(host);
    if (!access.has(record)) throw needsCode(record, "query");
    const name = params["name"] ?? "";
    const args = payloadFromWire(body.args, payloads);
    const run = access.handle(record);
    return answerBody(await run.query(name as never, args as never, { signal }).catch(throwOfCode), call);
  },
  settlePromise: (call) => settle(call, undefined),
  settleKeyedPromise: (call) => settle(call, call.params["key"] ?? ""),
};

function answerBody(answer: unknown, { payloads }: Call): AnswerOf<typeof messageOperations.sendUpdate> {
  return answer === undefined ? {} : { result: payloadToWire(answer, payloads) };
}

async function settle(
  call: Call<typeof messageOperations.settlePromise>,
  key: string | undefined,
): Promise<AnswerOf<typeof messageOperations.settlePromise>> {
  const { host, caller, params, payloads } = call;
  const body: BodyOf<typeof messageOperations.settlePromise> = call.body;
  const port = params["port"] ?? "";
  const run = await handleFor(host, await getRecord(call), "promise", port);
  const by = body.by ?? caller?.name;
  const options: SettleOptions = {
    ...(key !== undefined && { key }),
    ...(by !== undefined && { by }),
    ...(body.reason !== undefined && { reason: body.reason }),
  };
  if ("reject" in body) await run.reject(port as never, rejectionOf(body, payloads), options);
  else await run.resolve(port as never, payloadFromWire(body.value, payloads) as never, options);
  return changedRun(call);
}

function rejectionOf(
  { reject, error }: { readonly reject: string; readonly error?: unknown },
  form: PayloadForm,
): Error {
  const exact = form === "tagged" && error !== undefined ? payloadFromWire(error, form) : undefined;
  return exact instanceof Error ? exact : new Error(reject);
}

/** What the handler of the run's code throws is its answer, and no failure of the server. `thrown`: the caller gets the cause. */
function throwOfCode(error: unknown): never {
  if (error instanceof RepriseError && error.code !== "FATAL") throw error;
  const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
  throw new RepriseError("RUN_FAILED", `The code of the run threw ${name}: ${message}`, {
    cause: error,
    details: { thrown: true, status: 422 },
  });
}
