// HttpClient: starts, finds and controls runs of a server.
//
// http-client.C1. A start without an id names one itself, so that a start whose answer was lost is repeated without a second run.

import { checkOptionNames, RepriseError, toMs } from "../base/portable.ts";
import type { OpenPromiseBody, QueueBody, RunSummary, ScheduleBody } from "../contract/index.ts";
import type {
  BulkAction,
  BulkOptions,
  BulkReport,
  Client,
  OpenPromiseFilter,
  OpenPromiseInfo,
  QueueHandle,
  QueueInfo,
  RunFilter,
  RunInfo,
  ScheduleHandle,
  ScheduleInfo,
  StartOptions,
  TimeOrAge,
} from "../engine/index.ts";
import type { Queue, QueueOptions } from "../kernel/index.ts";
import { durationText, HttpRun } from "./http-run.ts";
import { fromWire, toWire, type Transport } from "./transport.ts";

interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

const PAGE = 200;
const START_OPTIONS = [
  "budget",
  "deadline",
  "debounce",
  "delay",
  "id",
  "priority",
  "signal",
  "signals",
  "singleton",
  "tags",
];

export class HttpClient implements Client<any> {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  // ── runs ──

  start: Client<any>["start"] = async (what: unknown, ...args: readonly unknown[]): Promise<any> => {
    const name = nameOf(what, "start(definition, input, { id })");
    const [input, options = {}] = args as [unknown, (StartOptions & { signals?: Record<string, unknown> })?];
    checkOptionNames(options, START_OPTIONS, "start");
    const { signal, signals, delay, deadline, debounce, ...rest } = options;
    const { version } = what as { readonly version?: unknown };
    const body = {
      ...rest,
      input: toWire(input),
      // http-client.C1
      id: rest.id ?? this.#transport.ports.newId(),
      ...(typeof version === "number" && { version }),
      ...(delay !== undefined && { delay: durationText(delay) }),
      ...(deadline !== undefined && { deadline: durationText(deadline) }),
      ...(debounce !== undefined && { debounce: { key: debounce.key, by: durationText(debounce.by) } }),
      ...(signals !== undefined && {
        signals: Object.fromEntries(Object.entries(signals).map(([port, value]) => [port, toWire(value)])),
      }),
    };
    const { body: started } = await this.#transport.json({
      method: "POST",
      path: ["definitions", name, "runs"],
      query: { payloads: "tagged" },
      body,
      signal,
      repeats: true,
    });
    // `singleton` and `debounce` may answer another run.
    return new HttpRun(this.#transport, (started as RunSummary).id);
  };

  get: Client<any>["get"] = (what: unknown, id: string): any => {
    this.#transport.checkOpen();
    nameOf(what, "get(definition, id)");
    return new HttpRun(this.#transport, id);
  };

  async find(id: string, options?: Abortable): Promise<RunInfo | undefined> {
    try {
      return (await new HttpRun(this.#transport, id).info(options)) as RunInfo;
    } catch (error) {
      if (error instanceof RepriseError && error.code === "RUN_NOT_FOUND") return undefined;
      throw error;
    }
  }

  async *list(filter: RunFilter = {}, options: Abortable = {}): AsyncGenerator<RunInfo, void, undefined> {
    const { after: behind, limit = Number.POSITIVE_INFINITY, ...selected } = filter;
    let isBehind = behind === undefined;
    let left = limit;
    const query = this.#selection(selected);
    for await (const row of this.#pages<RunSummary>(["runs"], query, options)) {
      if (left <= 0) return;
      if (isBehind) {
        yield infoOf(row);
        left -= 1;
      } else if (row.id === behind) isBehind = true;
    }
  }

  async *promises(
    filter: OpenPromiseFilter = {},
    options: Abortable = {},
  ): AsyncGenerator<OpenPromiseInfo, void, undefined> {
    checkOptionNames(filter, ["after", "definition", "limit", "name"], "promises");
    const { after, limit = Number.POSITIVE_INFINITY, ...selected } = filter;
    let left = limit;
    const query = { ...selected, payloads: "tagged", ...(after !== undefined && { after }) };
    for await (const row of this.#pages<OpenPromiseBody>(["promises"], query, options)) {
      if (left <= 0) return;
      yield promiseOf(row);
      left -= 1;
    }
  }

  async bulk(action: BulkAction, filter: RunFilter, options: BulkOptions = {}): Promise<BulkReport> {
    const { after, limit, ...selected } = filter;
    if (after !== undefined || limit !== undefined)
      throw new RepriseError(
        "USAGE",
        "bulk: `after` and `limit` are not available over HTTP. Narrow the filter by time.",
      );
    const { body } = await this.#transport.json({
      method: "POST",
      path: ["runs", "bulk"],
      body: { action, filter: this.#selection(selected) },
      signal: options.signal,
    });
    const { count, skipped } = body as BulkReport;
    options.onProgress?.({ count, skipped });
    return { count, skipped };
  }

  async prune(): Promise<never> {
    throw new RepriseError(
      "USAGE",
      "prune is not available over HTTP. Run `reprise prune --older-than <age>` beside the store.",
    );
  }

  /** The filter as the API names it. */
  #selection(filter: RunFilter): Record<string, string | readonly string[]> {
    const { definition, status, kind, tag, errorCode, idContains, parent } = filter;
    const at = (time: TimeOrAge | undefined, what: string): string | undefined =>
      time === undefined
        ? undefined
        : new Date(time instanceof Date ? time : this.#transport.ports.now() - toMs(time, what)).toISOString();
    const many = (one: string | readonly string[] | undefined): readonly string[] | undefined =>
      typeof one === "string" ? [one] : one;
    const query = {
      definition,
      kind,
      errorCode,
      parent,
      q: idContains,
      status: many(status),
      tag: many(tag),
      from: at(filter.createdAfter, "createdAfter"),
      to: at(filter.createdBefore, "createdBefore"),
      endedFrom: at(filter.endedAfter, "endedAfter"),
      endedTo: at(filter.endedBefore, "endedBefore"),
    };
    return Object.fromEntries(
      Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
  }

  async *#pages<T>(
    path: readonly string[],
    query: Readonly<Record<string, string | readonly string[]>>,
    { signal }: Abortable,
  ): AsyncGenerator<T, void, undefined> {
    for (let after: string | undefined; ;) {
      const at = after === undefined ? {} : { after };
      const { body } = await this.#transport.json({ path, query: { limit: PAGE, ...query, ...at }, signal });
      const { items, next } = body as { readonly items: readonly T[]; readonly next?: string };
      for (const item of items) {
        signal?.throwIfAborted();
        yield item;
      }
      if (next === undefined) return;
      after = next;
    }
  }

  // ── schedules ──

  schedule: Client<any>["schedule"] = async (name: string): Promise<never> => {
    throw new RepriseError(
      "USAGE",
      `schedule: creating ${name} is not available over HTTP. Call engine.schedule in the process that has the definition.`,
    );
  };

  getSchedule(name: string): ScheduleHandle {
    const post = (action: string, body: object, { signal }: Abortable = {}): Promise<{ readonly body: any }> =>
      this.#transport.json({ method: "POST", path: ["schedules", name, action], body, signal });
    return {
      name,
      info: async (options = {}) => {
        const { body } = await this.#transport.json({ path: ["schedules", name], signal: options.signal });
        return scheduleOf(body as ScheduleBody);
      },
      pause: async (options) => void (await post("pause", {}, options)),
      resume: async (options) => void (await post("resume", {}, options)),
      trigger: async ({ id, ...options } = {}) =>
        infoOf((await post("trigger", id === undefined ? {} : { id }, options)).body as RunSummary),
      backfill: async (from, to, options) => {
        const period = { from: from.toISOString(), to: to.toISOString() };
        const { count } = (await post("backfill", period, options)).body as { readonly count: number };
        return { count };
      },
      remove: async (options = {}) => {
        await this.#transport.send({ method: "DELETE", path: ["schedules", name], signal: options.signal });
      },
    };
  }

  async findSchedule(name: string, options?: Abortable): Promise<ScheduleInfo | undefined> {
    return unlessMissing("SCHEDULE_NOT_FOUND", this.getSchedule(name).info(options as { signal?: AbortSignal }));
  }

  async *listSchedules(options: Abortable = {}): AsyncGenerator<ScheduleInfo, void, undefined> {
    for await (const body of this.#pages<ScheduleBody>(["schedules"], {}, options)) yield scheduleOf(body);
  }

  // ── queues ──

  getQueue(queue: Queue | string): QueueHandle {
    const name = typeof queue === "string" ? queue : queue.name;
    const post = async (action: string, body: object, { signal }: Abortable = {}): Promise<void> =>
      void (await this.#transport.json({ method: "POST", path: ["queues", name, action], body, signal }));
    return {
      name,
      pause: (options) => post("pause", {}, options),
      resume: (options) => post("resume", {}, options),
      limit: (limits, options) => post("limit", { limits: limitsOf(limits) }, options),
    };
  }

  async findQueue(queue: Queue | string, { signal }: Abortable = {}): Promise<QueueInfo | undefined> {
    const name = typeof queue === "string" ? queue : queue.name;
    const read = this.#transport.json({ path: ["queues", name], signal });
    const found = await unlessMissing("QUEUE_NOT_FOUND", read);
    return found && queueOf(found.body as QueueBody);
  }

  async *listQueues({ signal }: Abortable = {}): AsyncGenerator<QueueInfo, void, undefined> {
    const { body } = await this.#transport.json({ path: ["queues"], signal });
    for (const one of (body as { readonly items: readonly QueueBody[] }).items) yield queueOf(one);
  }

  // ── the end ──

  async close(): Promise<void> {
    this.#transport.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function nameOf(what: unknown, call: string): string {
  if (typeof what === "string") return what;
  if (typeof what === "object" && what !== null && "name" in what && typeof what.name === "string") return what.name;
  throw new RepriseError("UNKNOWN_DEFINITION", `Expected a definition or its name, got ${typeof what}. Call ${call}.`);
}

async function unlessMissing<T>(code: string, read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof RepriseError && error.code === code) return undefined;
    throw error;
  }
}

/** Fields that hold times, as dates. */
function withDates<T extends object>(body: T, ...fields: readonly string[]): any {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, fields.includes(name) ? new Date(value as string) : value]),
  );
}

function infoOf(row: RunSummary): RunInfo {
  return withDates(row, "createdAt", "endedAt") as RunInfo;
}

function promiseOf({ run, hidden: _hidden, ...row }: OpenPromiseBody): OpenPromiseInfo {
  const dated = withDates(row, "createdAt", "deadline") as Omit<OpenPromiseInfo, "runId">;
  return { runId: run, ...dated, ...("show" in row && { show: fromWire(row.show) }) };
}

function scheduleOf({ lagMs: _lagMs, reasons: _reasons, ...row }: ScheduleBody): ScheduleInfo {
  const dated = withDates(row, "createdAt", "nextAt", "lastAt") as ScheduleInfo;
  return { ...dated, waiting: row.waiting.map((time) => new Date(time)) };
}

function queueOf({ fullKeys: _fullKeys, ...row }: QueueBody): QueueInfo {
  return withDates(row, "pausedAt", "oldestReadyAt") as QueueInfo;
}

/** `per` in milliseconds, as the API takes it. */
function limitsOf({ perKey, ...limits }: QueueOptions): object {
  const one = ({ concurrency, rate }: Omit<QueueOptions, "perKey">): object => ({
    ...(concurrency !== undefined && { concurrency }),
    ...(rate !== undefined && { rate: { limit: rate.limit, per: toMs(rate.per, "limit: rate.per") } }),
  });
  return { ...one(limits), ...(perKey !== undefined && { perKey: one(perKey) }) };
}
