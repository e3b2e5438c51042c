// Run detail: everything about one run but its journal. A bounded number of reads, whatever the length of the journal.

import type { OpenPromiseBody, RunDetail } from "../../contract/index.ts";
import {
  commandForkOriginOf,
  decodeData,
  forkOriginOf,
  hasEnded,
  promiseIdOf,
  type Entry,
  type RunRecord,
} from "../../kernel/index.ts";
import { thrownErrorOf } from "../../picture/index.ts";
import type { ServerHost } from "../host.ts";
import { payloadToWire } from "../wire-payload.ts";
import { budgetBody } from "./budget-body.ts";
import { openBody } from "./promise-lists.ts";
import { reasonBody } from "./reason-body.ts";
import { summaryOf } from "./run-summary.ts";
import { accessOf, isoOf, payloadFields, type View } from "./view.ts";

export async function readRunDetail(host: ServerHost, record: RunRecord, view: View): Promise<RunDetail> {
  const access = accessOf(host);
  const info = await access.info(record);
  const [first] = record.head === 0 ? [] : await host.store.readJournal(record.run, 0, 1);
  const forkOf = forkOfEntry(first);
  const { input, output, error, parent, worker, waitsFor = [], attempts, runtimes = [] } = info;
  const { hidden = [], ...payloads } = payloadFields(view, { input, output });
  const isHidden = error !== undefined && !view.showsPayloads;
  const missing = [...hidden, ...(isHidden ? ["error"] : [])];
  const budget = record.budget === undefined ? undefined : await host.store.readBudget(record.budget);
  const body = access.registry.findWorkflow(record.definition, record.version);
  return {
    ...summaryOf(record),
    ...payloads,
    ...(error !== undefined && view.showsPayloads && { error: thrownErrorOf(error, view) }),
    ...(parent !== undefined && { parent }),
    children: info.children ?? 0,
    ...(forkOf !== undefined && { forkOf }),
    ...(worker !== undefined && {
      worker: {
        worker: worker.worker,
        ...(worker.name !== undefined && { name: worker.name }),
        alive: worker.alive,
        ...(worker.leaseUntil !== undefined && { leaseUntil: isoOf(worker.leaseUntil) }),
      },
    }),
    waitsFor: waitsFor.map((reason) => reasonBody(reason, view, record.id)),
    openPromises: hasEnded(record.status) ? [] : await readOpenPromises(host, record, view),
    ...(budget !== undefined && { budget: budgetBody(budget) }),
    attempts: {
      failed: attempts?.failed ?? 0,
      lost: attempts?.lost ?? 0,
      returned: attempts?.returned ?? 0,
    },
    runtimes: runtimes.map((one) => payloadToWire(one, "plain") as Record<string, unknown>),
    streams: Object.entries(body?.ports ?? {}).flatMap(([name, { port }]) => (port === "stream" ? [name] : [])),
    registered: access.has(record),
    ...(missing.length > 0 && { hidden: missing }),
  };
}

function forkOfEntry(first: Entry | undefined): RunDetail["forkOf"] {
  if (first?.type !== "RunStarted") return undefined;
  const started = decodeData("RunStarted", first.data);
  const byStep = forkOriginOf(started);
  if (byStep !== undefined) return { run: byStep.run, at: `step ${byStep.step}` };
  const byCommand = commandForkOriginOf(started);
  return byCommand && { run: byCommand.run, at: byCommand.at };
}

/**
 * The promises that the store lists, each with what its entry shows. One whose answer the run has not read yet is settled. The inbox is read
 * first: an answer that the run takes in between is then seen in the inbox, or its promise is no longer listed.
 */
async function readOpenPromises(
  { store }: ServerHost,
  { run, id, definition, read }: RunRecord,
  view: View,
): Promise<readonly OpenPromiseBody[]> {
  const open: OpenPromiseBody[] = [];
  const unread = await store.readInbox(run, read);
  const work = await store.readRunWork(run);
  for (const { command, at, budget } of work?.budgetRequests ?? []) {
    const promise = { run, runId: id, definition, command, at, budget, name: "", key: undefined, seq: 0, data: "" };
    open.push(openBody(promise, view));
  }
  const answered = new Set(unread.filter(({ type }) => ANSWERS.has(type)).map(({ target }) => target));
  for (const { name, key, seq, at, command } of work?.promises ?? []) {
    if (answered.has(promiseIdOf({}, name, key, "promise"))) continue;
    const [entry] = await store.readJournal(run, seq - 1, 1);
    const { show, timeout } = entry?.type === "PromiseCreated" ? decodeData(entry.type, entry.data) : {};
    open.push({
      run: id,
      definition,
      kind: "promise",
      name,
      ...(key !== undefined && { key }),
      ...payloadFields(view, { show }),
      createdAt: isoOf(at),
      ...(timeout !== undefined && { deadline: isoOf(at + timeout) }),
      cursor: `${run}:${command}`,
    });
  }
  return open;
}

const ANSWERS: ReadonlySet<string> = new Set(["PromiseResolved", "PromiseRejected"]);
