// Definitions: what can be started, figures of the last hour, and the start of a run.

import type { definitionOperations } from "../../contract/index.ts";
import type { StartOptions } from "../../engine/index.ts";
import type { Duration } from "../../base/index.ts";
import { jsonResponse } from "../../http/index.ts";
import { checkNewId, maySeeDefinition, maySeeStats } from "../auth/scope.ts";
import type { HandlersOf } from "../host.ts";
import { definitionBody, getDefinition, knownDefinitions } from "../read/definition-body.ts";
import { definitionStats } from "../read/definition-stats.ts";
import { DEFAULT_LIMIT } from "../read/run-selection.ts";
import { getRecord, summaryOf } from "../read/run-summary.ts";
import { accessOf } from "../read/view.ts";
import { payloadFromWire } from "../wire-payload.ts";
import { readResult } from "./runs.ts";

export const definitionHandlers: HandlersOf<typeof definitionOperations> = {
  async listDefinitions({ host, caller, query }) {
    const { limit = DEFAULT_LIMIT, after = "" } = query ?? {};
    const access = accessOf(host);
    const known = (await knownDefinitions(host.store, access)).filter(
      ({ name }) => name > after && maySeeDefinition(caller, name),
    );
    const page = known.slice(0, limit);
    const items = await Promise.all(page.map((one) => definitionBody(host.store, access, one)));
    return { items, ...(known.length > limit && { next: page.at(-1)!.name }) };
  },
  getDefinition: ({ host, params, query }) =>
    getDefinition(host.store, accessOf(host), params["name"] ?? "", query?.version),
  async startRun(call) {
    const { host, params, body, payloads, waitMs, idempotencyKey, traceparent } = call;
    const { input, id = idempotencyKey, version, signals, debounce, delay, deadline, ...options } = body;
    const name = params["name"] ?? "";
    await checkNewId(call, id);
    const start: StartOptions & { signals?: Record<string, unknown> } = {
      ...options,
      ...(id !== undefined && debounce === undefined && { id }),
      ...(delay !== undefined && { delay: delay as Duration }),
      ...(deadline !== undefined && { deadline: deadline as Duration }),
      ...(debounce !== undefined && { debounce: { key: debounce.key, by: debounce.by as Duration } }),
      ...(signals !== undefined && {
        signals: Object.fromEntries(
          Object.entries(signals).map(([port, value]) => [port, payloadFromWire(value, payloads)]),
        ),
      }),
    };
    const state = call.request.headers.get("tracestate") ?? undefined;
    const given = "input" in body ? payloadFromWire(input, payloads) : undefined;
    const run = await accessOf(host).start(name, version, given, {
      ...start,
      ...(traceparent !== undefined && { trace: { parent: traceparent, state } }),
    });
    const started = { ...call, params: { ...params, id: run.id } };
    const location = `${call.url.pathname.replace(/\/definitions\/.*$/s, "")}/runs/${encodeURIComponent(run.id)}`;
    const headers = { location, "cache-control": "no-store" };
    if (waitMs > 0) {
      const answer = await readResult(started, waitMs);
      answer.headers.set("location", location);
      answer.headers.set("preference-applied", `wait=${Math.round(waitMs / 1_000)}`);
      return answer;
    }
    return jsonResponse(summaryOf(await getRecord({ host, caller: undefined, params: {} }, run.id)), {
      status: 201,
      headers,
    });
  },
  async getStats({ host, caller, query }) {
    const access = accessOf(host);
    const known = (await knownDefinitions(host.store, access)).filter(
      ({ name }) => maySeeStats(caller, name) && (query?.definition ?? name) === name,
    );
    return {
      items: await Promise.all(known.slice(0, MAX_STATS).map((one) => definitionStats(host.store, access, one))),
    };
  },
};

const MAX_STATS = 100;
