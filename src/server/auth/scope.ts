// Scope: which runs, definitions and queues a caller may see.
//
// scope.S1. A run outside of a caller's scope does not exist for that caller: the answer is the one for an unknown id.
// scope.S2. The path decides: an operation with a run, definition, queue or schedule in its path is checked before its code runs. Any other
//   operation refuses a caller with scopes, unless the table says that it filters or tells nothing (`scope` of the operation).
// scope.S3. A browser token reaches operations of its own run and its changes (`/v1/events`) only; one for a stream that stream only. It
//   sees no names of definitions, queues or workers.

import { RepriseError } from "../../base/index.ts";
import type { Operation } from "../../contract/index.ts";
import type { Caller, ServerHost } from "../host.ts";

/** The facts of a run that scopes look at. */
export interface ScopedRun {
  readonly id: string;
  readonly definition: string;
  readonly tags: readonly string[];
}

export function maySeeRun(caller: Caller | undefined, { id, definition, tags }: ScopedRun): boolean {
  if (caller?.run !== undefined && caller.run !== id) return false;
  return maySeeDefinition(caller, definition) && (caller?.tags?.some((tag) => tags.includes(tag)) ?? true);
}

export function maySeeDefinition(caller: Caller | undefined, name: string): boolean {
  return caller?.definitions?.includes(name) ?? true;
}

export function maySeeQueue(caller: Caller | undefined, name: string): boolean {
  return caller?.run === undefined && (caller?.queues?.includes(name) ?? true);
}

/** A schedule starts runs of its definition; a caller with tags cannot know which tags they will have. */
export function maySeeSchedule(caller: Caller | undefined, definition: string): boolean {
  return maySeeStats(caller, definition);
}

/** Figures of a definition are of all its runs, so a caller that sees only some of them does not get them. */
export function maySeeStats(caller: Caller | undefined, definition: string): boolean {
  return caller?.run === undefined && caller?.tags === undefined && maySeeDefinition(caller, definition);
}

export function isScoped(caller: Caller | undefined): boolean {
  if (caller === undefined) return false;
  const { definitions, tags, queues, run } = caller;
  return definitions !== undefined || tags !== undefined || queues !== undefined || run !== undefined;
}

/** What an operation is asked for. */
export interface ScopedCall {
  readonly operation: Operation;
  readonly caller: Caller | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly host: Pick<ServerHost, "client" | "store">;
}

/** scope.S1, scope.S2. Throws if the caller's scopes do not include what the operation is about. */
export async function checkScope(call: ScopedCall): Promise<void> {
  const { operation, caller, params, host } = call;
  if (caller === undefined || !isScoped(caller)) return;
  const [, noun, variable] = /^\/v1\/(\w+)\/\{(\w+)\}/.exec(operation.path) ?? [];
  const name = params[variable ?? ""] ?? "";
  if (caller.run !== undefined) checkBrowserScope(call, noun === "runs" ? name : undefined);
  switch (noun) {
    case "runs":
      for (const id of new Set([name, ...otherRuns(params)])) await checkRun(caller, id, host);
      if (operation.path.endsWith("/fork")) checkNewRun(call);
      return;
    case "definitions":
      if (!maySeeDefinition(caller, name))
        throw new RepriseError("UNKNOWN_DEFINITION", `There is no definition ${name}.`, { details: { status: 404 } });
      return checkNewRun(call);
    case "queues":
      if (maySeeQueue(caller, name)) return;
      throw new RepriseError("QUEUE_NOT_FOUND", `There is no queue ${name}.`);
    case "schedules": {
      const schedule = await host.client.findSchedule(name);
      if (schedule !== undefined && maySeeSchedule(caller, schedule.definition)) return;
      throw new RepriseError("SCHEDULE_NOT_FOUND", `There is no schedule ${name}.`);
    }
    default:
      if (operation.scope === undefined) throw outOfScope(call);
  }
}

/** The other run of a comparison, and the like. */
function otherRuns({ other }: Readonly<Record<string, string>>): readonly string[] {
  return other === undefined ? [] : [other];
}

async function checkRun(caller: Caller, id: string, { store }: ScopedCall["host"]): Promise<void> {
  const run = await store.findRun(id);
  if (run !== undefined && maySeeRun(caller, run)) return;
  throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store: \`reprise list\`.`);
}

/** A run that the caller starts must be one that it can see. */
function checkNewRun({ operation, caller, body }: ScopedCall): void {
  if (operation.method !== "POST" || caller?.tags === undefined) return;
  const { tags, singleton, debounce } = (body ?? {}) as {
    readonly tags?: readonly string[];
    readonly singleton?: unknown;
    readonly debounce?: unknown;
  };
  // Their keys are of the definition: such a start joins or replaces a run whatever its tags are.
  if (singleton !== undefined || debounce !== undefined)
    throw new RepriseError(
      "ROLE_REQUIRED",
      `The token ${caller.name} is limited to runs with the tag ${caller.tags.join(" or ")}; \`singleton\` and \`debounce\` concern runs with other tags. Use an id, or a token without tags.`,
      { details: { status: 403 } },
    );
  if (caller.tags.some((tag) => tags?.includes(tag) === true)) return;
  throw new RepriseError(
    "ROLE_REQUIRED",
    `The token ${caller.name} is limited to runs with the tag ${caller.tags.join(" or ")}. Start the run with one of them: \`"tags": [${JSON.stringify(caller.tags[0])}]\`.`,
    { details: { status: 403 } },
  );
}

/** Refuses the id of a run outside of the scope: a start with it would answer that run, and send it signals. */
export async function checkNewId(
  { caller, host }: Pick<ScopedCall, "caller" | "host">,
  id: string | undefined,
): Promise<void> {
  if (id === "." || id === "..")
    throw new RepriseError(
      "BAD_ID",
      `A run with the id ${id} has no address: browsers and servers shorten it. Use another id.`,
    );
  const run = id === undefined || !isScoped(caller) ? undefined : await host.store.findRun(id);
  if (run === undefined || maySeeRun(caller, run)) return;
  throw new RepriseError("START_CONFLICT", `The id ${id} is taken. Use another one.`, { details: { run: id } });
}

/** scope.S3 */
function checkBrowserScope(call: ScopedCall, run: string | undefined): void {
  const { operation, caller, params } = call;
  if (run === undefined && (operation.path !== "/v1/events" || caller?.stream !== undefined)) throw outOfScope(call);
  if (caller?.stream === undefined) return;
  const isStream = /^\/v1\/runs\/\{\w+\}\/streams\/\{(\w+)\}$/.exec(operation.path);
  if (isStream === null || params[isStream[1]!] !== caller.stream) throw outOfScope(call);
}

function outOfScope({ operation, caller }: ScopedCall): RepriseError {
  const { definitions, tags, queues, run, stream } = caller ?? {};
  const limits = [
    ...(run === undefined ? [] : [`the run ${run}`]),
    ...(stream === undefined ? [] : [`its stream ${stream}`]),
    ...(definitions === undefined ? [] : [`the definitions ${definitions.join(", ")}`]),
    ...(tags === undefined ? [] : [`the tags ${tags.join(", ")}`]),
    ...(queues === undefined ? [] : [`the queues ${queues.join(", ")}`]),
  ];
  return new RepriseError(
    "ROLE_REQUIRED",
    `The token ${caller?.name} is limited to ${limits.join(", ")}; ${operation.method} ${operation.path} is about the whole server. Use a token without scopes.`,
    { details: { status: 403 } },
  );
}
