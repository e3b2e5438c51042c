// Messages to a run: signals, updates, queries, and answers of promises.

import type { AnswerOf, BodyOf, messageOperations } from "../../contract/index.ts";
import type { SettleOptions } from "../../engine/index.ts";
import type { Call, HandlersOf } from "../host.ts";
import { handleFor } from "../read/message-ports.ts";
import { needsCode } from "../read/needs-code.ts";
import { changedRun, getRecord } from "../read/run-summary.ts";
import { accessOf } from "../read/view.ts";
import { payloadFromWire, payloadToWire } from "../wire-payload.ts";

export const messageHandlers: HandlersOf<typeof messageOperations> = {
  async sendSignal(call) {
    const { host, params, body, payloads, idempotencyKey } = call;
    const name = params["name"] ?? "";
    const dedupId = body.dedupId ?? idempotencyKey;
    const run = await handleFor(host, await getRecord(call), "signal", name);
    await run.signal(
      name as never,
      payloadFromWire(body.value, payloads) as never,
      dedupId === undefined ? {} : { dedupId },
    );
    return changedRun(call);
  },
  async sendUpdate(call) {
    const { host, params, body, payloads, idempotencyKey, signal } = call;
    const name = params["name"] ?? "";
    const dedupId = body.dedupId ?? idempotencyKey;
    const run = await handleFor(host, await getRecord(call), "update", name);
    const options = { signal, ...(dedupId !== undefined && { dedupId }) };
    const answer: unknown = await run.update(name as never, payloadFromWire(body.args, payloads) as never, options);
    return answerBody(answer, call);
  },
  async askQuery(call) {
    const { host, params, body, payloads, signal } = call;
    const record = await getRecord(call);
    const access = accessOf(host);
    if (!access.has(record)) throw needsCode(record, "query");
    const name = params["name"] ?? "";
    const args = payloadFromWire(body.args, payloads);
    return answerBody(await access.handle(record).query(name as never, args as never, { signal }), call);
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
  if ("reject" in body) await run.reject(port as never, new Error(body.reject), options);
  else await run.resolve(port as never, payloadFromWire(body.value, payloads) as never, options);
  return changedRun(call);
}
