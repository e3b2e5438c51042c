// Control of a run: cancel, pause, retry, fork, replay, verify, delete.
//
// The journal records the reason of cancel and terminate. The reason of the others is in the audit line of the request (audit.ts).

import { RepriseError, type Duration } from "../../base/index.ts";
import type { AnswerOf, BodyOf, controlOperations } from "../../contract/index.ts";
import type { Run } from "../../engine/index.ts";
import { jsonResponse } from "../../http/index.ts";
import type { RunRecord } from "../../kernel/index.ts";
import type { Replay } from "../../workflow/index.ts";
import { checkNewId } from "../auth/scope.ts";
import type { Call, HandlersOf } from "../host.ts";
import { needsCode } from "../read/needs-code.ts";
import { changedRun, getRecord, summaryOf } from "../read/run-summary.ts";
import { findFault, verdictBody } from "../read/verdict-body.ts";
import { accessOf, viewOf } from "../read/view.ts";
import { payloadFromWire } from "../wire-payload.ts";

type Summary = AnswerOf<typeof controlOperations.cancelRun>;

export const controlHandlers: HandlersOf<typeof controlOperations> = {
  cancelRun: (call) => control(call, (run) => run.cancel(call.body.reason)),
  terminateRun: (call) => control(call, (run) => run.terminate(call.body.reason)),
  raiseBudget(call) {
    const { add, ...answerer } = call.body;
    return control(call, (run) => run.raise(add, answerer));
  },
  declineBudget: (call) => control(call, (run) => run.declineBudget(call.body)),
  pauseRun: (call) => control(call, (run) => run.pause()),
  resumeRun: (call) => control(call, (run) => run.resume()),
  retryRun: (call) => control(call, (run) => run.retry()),
  async forkRun(call) {
    const { host } = call;
    const record = await getRecord(call);
    await checkNewId(call, call.body.id ?? call.idempotencyKey);
    const fork = await accessOf(host).handle(record).fork(forkOptions(record, call));
    const location = `${call.url.pathname.replace(/\/[^/]+\/fork$/, "")}/${encodeURIComponent(fork.id)}`;
    const made = await getRecord({ host, caller: undefined, params: {} }, fork.id);
    return jsonResponse(summaryOf(made), { status: 201, headers: { location, "cache-control": "no-store" } });
  },
  async migrateRun(call) {
    const { version, dryRun } = call.body;
    const record = await getRecord(call);
    const access = accessOf(call.host);
    if (access.registry.findWorkflow(record.definition, version) === undefined)
      throw needsCode({ ...record, version }, "migrate");
    await access.handle(record).migrate({ version, ...(dryRun !== undefined && { dryRun }), signal: call.signal });
    return changedRun(call);
  },
  async replayRun(call) {
    const { generation, lenient } = call.body;
    return judge(call, "replay", generation, (run, options) => run.replay({ ...options, strict: lenient !== true }));
  },
  verifyRun: (call) => judge(call, "verify", call.body.generation, (run, options) => run.verify(options)),
  async deleteRun(call) {
    return accessOf(call.host)
      .handle(await getRecord(call))
      .delete();
  },
};

async function control(
  call: Pick<Call, "host" | "caller" | "params">,
  act: (run: Run<any>) => Promise<void>,
): Promise<Summary> {
  const record = await getRecord(call);
  await act(accessOf(call.host).handle(record));
  return (await call.host.store.findRun(record.id)) === undefined ? summaryOf(record) : changedRun(call);
}

type ForkBody = BodyOf<typeof controlOperations.forkRun>;

/** The options of `run.fork` for the kind of the run. */
function forkOptions(
  record: RunRecord,
  { body, payloads, signal, idempotencyKey }: Call<typeof controlOperations.forkRun>,
): never {
  const { at, answer, answers, patch, deadline, reason: _reason, id = idempotencyKey, ...given }: ForkBody = body;
  const values = (one: Readonly<Record<string, unknown>>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(one).map(([name, value]) => [name, payloadFromWire(value, payloads)]));
  if ("answer" in body && at === undefined)
    throw new RepriseError("BAD_OPTIONS", "fork: `answer` needs `at`, the command that is answered.");
  const all = {
    ...(answers && values(answers)),
    ...("answer" in body && at !== undefined && { [at]: payloadFromWire(answer, payloads) }),
  };
  const isGraph = record.kind === "graph";
  return {
    ...given,
    ...(id !== undefined && { id }),
    ...(deadline !== undefined && { deadline: deadline as Duration }),
    ...(patch && { patch: values(patch) }),
    // A graph is forked from the step before the commands that are answered otherwise.
    ...(at !== undefined && !isGraph && { at }),
    ...(Object.keys(all).length > 0 && { answers: all }),
    signal,
  } as never;
}

async function judge(
  call: Call,
  what: "replay" | "verify",
  generation: number | undefined,
  ask: (run: Run<any>, options: { generation: number; signal: AbortSignal }) => ReturnType<Run<any>["verify"]>,
): Promise<AnswerOf<typeof controlOperations.verifyRun>> {
  const { host, signal } = call;
  const record = await getRecord(call, undefined, generation);
  const access = accessOf(host);
  if (!access.has(record)) throw needsCode(record, what);
  const began = host.clock.now();
  // A damaged journal is not replayed: its values are not those of the run, and some may not be readable. Where only a key is missing,
  // the replay says so.
  let fault = await findFault(host.store, record);
  let replay: Replay | undefined;
  try {
    if (fault?.code !== undefined || fault === undefined)
      replay = await ask(access.handle(record), { generation: record.generation, signal });
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== "STORE_CORRUPT") throw error;
    // The chain is intact, and other rows of the run are not.
    fault = { seq: record.head, problem: error.message };
  }
  return verdictBody(host.store, record, { fault, replay }, host.clock.now() - began, viewOf(call));
}
