// Evals: reports of evaluations, which are runs of their own (evaluation-report.R1).

import { RepriseError } from "../../base/index.ts";
import type { EvaluationBody, evalOperations, EvaluationSummary } from "../../contract/index.ts";
import { EVALUATION, evaluationTag, readReport, type EvaluationReport, type OutcomeError } from "../../engine/index.ts";
import type { Redaction } from "../../kernel/index.ts";
import type { HandlersOf } from "../host.ts";
import { DEFAULT_LIMIT } from "../read/run-selection.ts";
import { getRecord } from "../read/run-summary.ts";
import { isoOf, viewOf } from "../read/view.ts";

export const evalHandlers: HandlersOf<typeof evalOperations> = {
  async listEvals(call) {
    const { host, query } = call;
    const { limit = DEFAULT_LIMIT, after, definition } = query ?? {};
    const items: EvaluationSummary[] = [];
    const filter = {
      definition: EVALUATION,
      status: "completed",
      ...(definition !== undefined && { tag: evaluationTag(definition) }),
      ...(after !== undefined && { after }),
    } as const;
    for await (const { id } of host.client.list(filter)) {
      if (items.length === limit) return { items, next: items.at(-1)!.id };
      const record = await host.store.findRun(id);
      const report = record && (await readReport(host.store, record));
      if (report !== undefined) items.push(summaryOf({ ...report, id }));
    }
    return { items };
  },
  async getEval(call) {
    const record = await getRecord(call);
    const report = await readReport(call.host.store, record);
    if (report !== undefined) return bodyOf({ ...report, id: record.id }, viewOf(call).redaction);
    throw new RepriseError("RUN_NOT_FOUND", `Run ${record.id} is not the report of an evaluation.`, {
      details: { run: record.id },
    });
  },
};

function summaryOf({
  id,
  definition,
  startedAt,
  endedAt,
  effects,
  at,
  models,
  scores,
  counts,
  cost,
}: EvaluationReport) {
  return {
    id,
    definition,
    startedAt: isoOf(startedAt),
    endedAt: isoOf(endedAt),
    effects,
    ...(at !== undefined && { at }),
    ...(models !== undefined && { models }),
    scores,
    counts,
    ...(cost !== undefined && { cost }),
  };
}

/** Messages of errors may quote what is redacted elsewhere. */
function bodyOf(report: EvaluationReport, redaction: Redaction): EvaluationBody {
  const shown = ({ name, message, code }: OutcomeError): OutcomeError => ({
    name,
    message: redaction.text(message),
    ...(code !== undefined && { code }),
  });
  const outcome = ({ status, error }: EvaluationReport["runs"][number]["was"]) => ({
    status,
    ...(error !== undefined && { error: shown(error) }),
  });
  return {
    ...summaryOf(report),
    runs: report.runs.map(({ was, is, skipped, ...run }) => ({
      ...run,
      was: outcome(was),
      ...(is !== undefined && { is: outcome(is) }),
      ...(skipped !== undefined && { skipped: shown(skipped) }),
    })),
  };
}
