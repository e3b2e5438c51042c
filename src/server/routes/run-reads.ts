// Run reads: journal, timeline, picture, executions, logs, checkpoints, states, differences.

import type { runReadOperations } from "../../contract/index.ts";
import { RepriseError } from "../../base/index.ts";
import { readRunPicture, readTimeline, thrownErrorOf } from "../../picture/index.ts";
import type { HandlersOf } from "../host.ts";
import { drawableOf } from "../read/definition-body.ts";
import { downloadJournal } from "../read/journal-download.ts";
import { readJournalPage } from "../read/journal-page.ts";
import { readLogPage } from "../read/log-page.ts";
import { listAttempts } from "../read/run-attempts.ts";
import { listCheckpoints, readCheckpoint, readState } from "../read/checkpoints.ts";
import { needsCode } from "../read/needs-code.ts";
import { diffBodyOf } from "../read/run-diff.ts";
import { DEFAULT_LIMIT } from "../read/run-selection.ts";
import { getRecord } from "../read/run-summary.ts";
import { accessOf, viewOf } from "../read/view.ts";

const TIMELINE_ROWS = 200;
const DIFF_ITEMS = 100;

export const runReadHandlers: HandlersOf<typeof runReadOperations> = {
  async listJournal(call) {
    const { limit = DEFAULT_LIMIT, after, order = "first", generation } = call.query ?? {};
    const record = await getRecord(call, undefined, generation);
    return readJournalPage(call.host.store, record, { after, limit, order }, viewOf(call));
  },
  async downloadJournal(call) {
    const record = await getRecord(call, undefined, call.query?.generation);
    return downloadJournal(call.host.store, record);
  },
  async getTimeline(call) {
    const { limit = TIMELINE_ROWS, after, generation } = call.query ?? {};
    const record = await getRecord(call, undefined, generation);
    const view = viewOf(call);
    const options = {
      flow: accessOf(call.host).registry.findFlow(record.definition, record.version),
      showError: ({ error, stack }: { readonly error: unknown; readonly stack: unknown }) =>
        view.showsPayloads ? thrownErrorOf(error, view, stack) : undefined,
    };
    return readTimeline(call.host.store, record, options, { limit, after: Number(after ?? 0) || 0 });
  },
  async getPicture(call) {
    const { generation, step } = call.query ?? {};
    const record = await getRecord(call, undefined, generation);
    const { id, kind, definition, version } = record;
    if (kind === "workflow")
      throw new RepriseError("USAGE", `Run ${id} is a run of a workflow; only graphs and flows have a picture.`, {
        details: { status: 400 },
      });
    const drawable = drawableOf(accessOf(call.host), definition, version);
    if (drawable === undefined) throw needsCode(record, "draw");
    return readRunPicture(call.host.store, record, drawable, step);
  },
  async listAttempts(call) {
    const { limit = DEFAULT_LIMIT, after, generation, step } = call.query ?? {};
    const record = await getRecord(call, undefined, generation);
    return listAttempts(call.host.store, record, viewOf(call), { limit, after: Number(after ?? 0) || 0, step });
  },
  async listLogs(call) {
    const { host, query } = call;
    const { limit = DEFAULT_LIMIT, after, order = "first", command } = query ?? {};
    const { id } = await getRecord(call);
    const covers =
      host.logs === undefined
        ? "This server keeps no log lines: they are in the log of the workers."
        : "Lines of runs that the process of this server executed, since it started.";
    const page = host.logs === undefined ? { items: [] } : readLogPage(host.logs, id, { command, after, limit, order });
    return { ...page, covers };
  },
  async listCheckpoints(call) {
    const { limit = DEFAULT_LIMIT, after } = call.query ?? {};
    return listCheckpoints(call.host.store, await getRecord(call), limit, after);
  },
  async getCheckpoint(call) {
    return readCheckpoint(call.host.store, await getRecord(call), call.params["step"] ?? "");
  },
  async getState(call) {
    const { step, label } = call.query ?? {};
    return readState(call.host, await getRecord(call), viewOf(call), step, label);
  },
  async diffRuns(call) {
    const { host, params, query } = call;
    const [here, there] = [await getRecord(call), await getRecord(call, params["other"] ?? "")];
    const access = accessOf(host);
    const options = { limit: query?.limit ?? DIFF_ITEMS, signal: call.signal };
    const diff = await access.handle(here).diff(access.handle(there), options);
    return diffBodyOf(here.id, there.id, diff, viewOf(call));
  },
};
