// Fork of a flow at one of its nodes: that node and everything that follows from it are derived again, all else is kept (fork.F7).
//
// fork-flow.W1. Everything is checked before the write: the run has reached the nodes, the code matches the journal, and the answers
//   can be stored. The code is needed: it says what follows from what.

import { encode, RepriseError } from "../base/index.ts";
import { isForkable, planFlowFork, sortNodes, type FlowBody } from "../flow/index.ts";
import {
  CHAIN_START,
  chainAfter,
  decodeData,
  findJournalFault,
  type CommandForkOrigin,
  type CopiedFlow,
  type Entry,
  type RunRecord,
  type RunStartedData,
} from "../kernel/index.ts";
import { newRun } from "../process/index.ts";
import { entryData, replayJournal } from "../workflow/index.ts";
import type { ForkAtOptions } from "./fork-at.ts";
import { checkForkVersion, getMade, INPUT, mergeModels } from "./fork-outcome.ts";
import { checkForkStart, forkParts, type ForkStart } from "./fork-start.ts";
import type { RunHandleHost } from "./run-handle.ts";

export async function forkFlow(host: RunHandleHost, record: RunRecord, options: ForkAtOptions): Promise<RunRecord> {
  const { store, registry } = host;
  const start = checkForkStart(host, record, options);
  const { id, priority } = start;
  const { version, generation } = record;
  if (options.call !== undefined)
    throw new RepriseError("BAD_OPTIONS", "fork: a flow is forked at a node. Pass its name: { at }.");
  if (options.at === INPUT) return forkInput(host, record, options, start);
  if (options.version !== undefined && options.version !== version)
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: the fork of a flow has the version of its origin, ${version}. Remove \`version\`; run.migrate continues a live run with another one.`,
    );
  const body = registry.getFlow(record.definition, version);
  const nodes = changedNodes(body, record, options);
  const answers = checkAnswers(host, options.answers);
  const entries = await store.readJournal(record.run, 0, record.head);
  await checkReplay(host, record, entries);
  const [at = ""] = nodes;
  const flow = copyOf(body, { ...record, id, priority }, entries, nodes);
  const started = decodeData("RunStarted", entries[0]!.data);
  const forked: CommandForkOrigin = {
    ...{ run: record.id, generation, at, seq: record.head, chain: record.chain },
    ...(answers && { answers }),
    ...(options.effects === "recorded" && { effects: "recorded", head: record.head }),
  };
  return submitFork(host, record, { start, started, forked, version, mark: entries.at(-1)?.mark, flow }, options);
}

/** Everything is derived again, with the code as it is now: nothing is kept that it would have to match. */
async function forkInput(
  host: RunHandleHost,
  record: RunRecord,
  options: ForkAtOptions,
  start: ForkStart,
): Promise<RunRecord> {
  const version = checkForkVersion(host, record, options.version);
  const body = host.registry.getFlow(record.definition, version);
  changedNodes(body, record, { ...(options.answers && { answers: options.answers }) });
  const answers = checkAnswers(host, options.answers);
  const [first] = await host.store.readJournal(record.run, 0, 1);
  const forked: CommandForkOrigin = {
    ...{ run: record.id, generation: record.generation, at: INPUT, seq: 1 },
    chain: chainAfter(CHAIN_START, "RunStarted", "", first!.data),
    ...(answers && { answers }),
    ...(options.effects === "recorded" && { effects: "recorded", head: record.head }),
  };
  const started = decodeData("RunStarted", first!.data);
  return submitFork(host, record, { start, started, forked, version, mark: first!.mark }, options);
}

interface NewFork {
  readonly start: ForkStart;
  readonly started: RunStartedData;
  readonly forked: CommandForkOrigin;
  readonly version: number;
  /** Of the last entry that is kept. */
  readonly mark: number | undefined;
  readonly flow?: CopiedFlow;
}

async function submitFork(
  host: RunHandleHost,
  record: RunRecord,
  { start, started, forked, version, mark, flow }: NewFork,
  options: ForkAtOptions,
): Promise<RunRecord> {
  const { worker } = host;
  const definition = { kind: "flow", name: record.definition, version, ports: {} } as const;
  const models = mergeModels(started.models, options.models);
  const run = newRun(definition, { ...forkParts(host, start, definition, started, forked), models });
  const origin = { run: record.run, seq: forked.seq, mark };
  const outcome = await worker.submit({ write: "fork", run, origin, ...(flow && { flow }), settled: [] });
  // The origin may have continued since.
  const textOf = (one: CommandForkOrigin): string =>
    encode([one.run, one.generation, one.at, one.answers, one.effects]);
  const made = getMade(outcome, start.id, record, {
    text: `${forked.at} of run ${record.id}`,
    options: "answer",
    models,
    isSame: (stored) => "at" in stored && textOf(stored) === textOf(forked),
  });
  worker.wake();
  if (run.deadlineMs !== undefined) worker.dueAt(made.createdAt + run.deadlineMs);
  return made;
}

/** The nodes that are derived again, the first of them in topological order first. */
function changedNodes(body: FlowBody, { id }: RunRecord, { at, answers = {} }: ForkAtOptions): readonly string[] {
  const nodes = sortNodes(body, [...new Set([...(at === undefined ? [] : [at]), ...Object.keys(answers)])]);
  for (const node of nodes)
    if (!isForkable(body, node)) {
      const known = [...body.nodes.keys()].filter((one) => isForkable(body, one) && !one.endsWith("[]"));
      throw new RepriseError(
        "BAD_OPTIONS",
        `fork: ${node} is not an action, a call, a spread or an item of a spread of flow ${body.name}; those are: ${known.join(", ")}.`,
        { details: { run: id, at: node } },
      );
    }
  for (const node of Object.keys(answers))
    if (body.nodes.get(node)?.work.kind === "barrier" || node.endsWith("[]"))
      throw new RepriseError(
        "BAD_OPTIONS",
        `fork: ${node} is a spread, which has no answer of its own. Answer its items, such as ${node.replace("[]", "")}[0].`,
        { details: { run: id, at: node } },
      );
  return at === undefined ? nodes : [at, ...nodes.filter((node) => node !== at)];
}

function checkAnswers(
  { limits }: RunHandleHost,
  answers: ForkAtOptions["answers"],
): Readonly<Record<string, unknown>> | undefined {
  for (const [node, value] of Object.entries(answers ?? {}))
    entryData.encodeNamed(`The answer of ${node}`, value, limits);
  return answers;
}

/** fork-flow.W1. Code that derives other values would copy what it does not derive. */
async function checkReplay(client: RunHandleHost, record: RunRecord, entries: readonly Entry[]): Promise<void> {
  const { id, generation, chain, definition, version } = record;
  const fault = findJournalFault(entries, record);
  if (fault !== undefined)
    throw new RepriseError(fault.code ?? "STORE_CORRUPT", `The journal of run ${id}: ${fault.problem}.`, {
      details: { run: id, seq: fault.seq },
    });
  const { registry, timers } = client;
  const host = { ...client.executionHost, log: () => {} };
  const body = registry.getWorkflow(definition, version);
  const verdict = await replayJournal(body, { entries, chain, identity: { id, generation }, host, timers });
  if (verdict.status === "same") return;
  const { where, message, expected, actual } = verdict;
  throw new RepriseError(
    "REPLAY_MISMATCH",
    `Run ${id} cannot be forked with the current code, at ${where}: ${message}`,
    { details: { run: id, where, expected, actual } },
  );
}

function copyOf(body: FlowBody, record: RunRecord, entries: readonly Entry[], nodes: readonly string[]): CopiedFlow {
  const planned = planFlowFork(body, record, entries, nodes);
  if (planned.status === "ready") return planned.copy;
  const { node } = planned;
  if (planned.status === "unused")
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: the output of flow ${body.name} does not depend on ${node}, so a fork there would change nothing.`,
    );
  throw new RepriseError("CHECKPOINT_NOT_FOUND", `The run has not reached node ${node} yet.`, {
    details: { at: node },
  });
}
