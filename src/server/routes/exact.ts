// POST /v1/runs/{id}/exact: what methods of a run's handle return, in the form that a client of Reprise decodes.

import { RepriseError } from "../../base/index.ts";
import type { AnswerOf, exactOperations } from "../../contract/index.ts";
import { runAccessOf, type Run, type RunAccess } from "../../engine/index.ts";
import type { RunRecord } from "../../kernel/index.ts";
import type { Call, HandlersOf } from "../host.ts";
import { maySeeRun } from "../auth/scope.ts";
import { payloadFromWire, payloadToWire } from "../wire-payload.ts";

const PAGE = 200;
const PAGE_CHARS = 2_000_000;

type Answer = AnswerOf<typeof exactOperations.readExact>;

export const exactHandlers: HandlersOf<typeof exactOperations> = {
  async readExact(call) {
    const { method, args = [], skip = 0 } = call.body;
    const access = getAccess(call);
    const record = await getRecord(call, call.params["id"] ?? "");
    const run = access.handle(record);
    const given = args.map((arg) => payloadFromWire(arg, "tagged"));
    const [first, second] = given;
    const withSignal = (options: unknown): never =>
      ({ ...(options as object | undefined), signal: call.signal }) as never;
    switch (method) {
      case "attempts":
      case "checkpoints":
      case "journal":
        return page((run[method] as (options: never) => AsyncIterable<unknown>)(withSignal(first)), skip);
      case "checkpoint":
      case "stateAt":
        return answer(await run[method](first as never, withSignal(second)));
      case "diff": {
        const other = await getRecord(call, String(first));
        return answer(await run.diff(access.handle(other), withSignal(second)));
      }
      case "budget":
      case "info":
      case "scheduler":
      case "replay":
      case "verify":
        return answer(await (run as Run<any>)[method](withSignal(first)));
    }
  },
};

function getAccess({ host }: Call<any>): RunAccess {
  const access = runAccessOf(host.client);
  if (access !== undefined) return access;
  throw new RepriseError("BAD_OPTIONS", "This server was made with an object that gives no access to its runs.");
}

/** scope.S1 */
async function getRecord({ host, caller }: Call<any>, id: string): Promise<RunRecord> {
  const record = await host.store.findRun(id);
  if (record !== undefined && maySeeRun(caller, record)) return record;
  throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store: \`reprise list\`.`);
}

function answer(value: unknown): Answer {
  return value === undefined ? {} : { result: payloadToWire(withoutUndefined(value), "tagged") };
}

/** Absent and undefined mean the same to a reader of these results, and only the first is short. */
function withoutUndefined(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
}

async function page(items: AsyncIterable<unknown>, skip: number): Promise<Answer> {
  const found: unknown[] = [];
  let [index, chars] = [0, 0];
  for await (const item of items) {
    if (index >= skip) {
      if (found.length === PAGE || chars > PAGE_CHARS) return { result: found, next: index };
      const wire = payloadToWire(withoutUndefined(item), "tagged");
      chars += JSON.stringify(wire).length;
      found.push(wire);
    }
    index += 1;
  }
  return { result: found };
}
