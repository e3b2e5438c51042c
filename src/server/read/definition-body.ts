// Definition body: what is known about a definition: from the code of this process, from live runs, and from workers.

import { RepriseError } from "../../base/index.ts";
import type { DefinitionBody, Picture } from "../../contract/index.ts";
import type { RunAccess } from "../../engine/index.ts";
import { describeFlowBody } from "../../flow/index.ts";
import { describeGraphBody, graphOfRun } from "../../graph/index.ts";
import { readWorkerProfile, type DefinitionKind, type Schema, type Store } from "../../kernel/index.ts";
import { pictureOfFlow, pictureOfGraph, type Drawable } from "../../picture/index.ts";
import type { WorkflowBody } from "../../workflow/index.ts";
import { cached } from "./cached.ts";

export interface KnownDefinition {
  readonly name: string;
  /** Newest first. */
  readonly versions: readonly { readonly version: number; readonly live: number; readonly registered: boolean }[];
}

/** The definitions of this process, of live runs and of workers, by name. */
export function knownDefinitions(store: Store, { registry }: RunAccess): Promise<readonly KnownDefinition[]> {
  return cached(store, "definitions", async () => {
    const names = new Map<string, Map<number, { live: number; registered: boolean }>>();
    const note = (name: string, version: number, live: number, registered: boolean): void => {
      const versions = names.get(name) ?? new Map<number, { live: number; registered: boolean }>();
      const known = versions.get(version) ?? { live: 0, registered: false };
      versions.set(version, { live: known.live + live, registered: known.registered || registered });
      names.set(name, versions);
    };
    for (const { name, version } of registry.definitions) note(name, version, 0, true);
    for (const { name, version, live } of await store.countVersions()) note(name, version, live, false);
    for (const { profile } of await store.listWorkers())
      for (const { name, version } of readWorkerProfile(profile)?.definitions ?? []) note(name, version, 0, false);
    return [...names]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, versions]) => ({
        name,
        versions: [...versions]
          .toSorted(([a], [b]) => b - a)
          .map(([version, { live, registered }]) => ({ version, live, registered })),
      }));
  });
}

export async function definitionBody(
  store: Store,
  access: RunAccess,
  known: KnownDefinition,
  version?: number,
): Promise<DefinitionBody> {
  const { name, versions } = known;
  const body = access.registry.findWorkflow(name, version);
  const isRegistered = versions.some(({ registered }) => registered);
  return {
    name,
    kind: body?.kind ?? (await kindOf(store, name)),
    versions,
    ports: Object.entries(body?.ports ?? {}).map(([port, declared]) => {
      const schema = jsonSchemaOf("schema" in declared ? declared.schema : undefined);
      return { name: port, kind: declared.port, ...(schema !== undefined && { schema }) };
    }),
    ...inputOf(body),
    ...(body?.slotOptions !== undefined && { queue: body.slotOptions.queue.name }),
    registered: isRegistered,
    ...pictureOf(drawableOf(access, name, version)),
  };
}

export async function getDefinition(
  store: Store,
  access: RunAccess,
  name: string,
  version?: number,
): Promise<DefinitionBody> {
  const known = (await knownDefinitions(store, access)).find((one) => one.name === name);
  const [run] = known === undefined ? await store.listRuns({ definition: name, limit: 1 }) : [];
  if (known === undefined && run === undefined)
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `There is no definition ${name}: neither this process nor a run or a worker has it. Registered here: ${access.registry.definitionNames.join(", ") || "none"}.`,
      { details: { status: 404 } },
    );
  return definitionBody(store, access, known ?? { name, versions: [] }, version);
}

/** Of a definition whose code is elsewhere: that of its newest run. */
export async function kindOf(store: Store, definition: string): Promise<DefinitionKind> {
  const [run] = await store.listRuns({ definition, limit: 1 });
  return run?.kind ?? "workflow";
}

function inputOf(body: WorkflowBody | undefined): { readonly input?: unknown } {
  const input = jsonSchemaOf(body?.schema);
  return input === undefined ? {} : { input };
}

interface DescribedSchema {
  readonly jsonSchema?: { input(options: { readonly target: string }): unknown };
}

/** Of a Standard Schema that offers it (`~standard.jsonSchema`), or of one with a method for it, as zod and arktype have. */
export function jsonSchemaOf(schema: Schema<any, unknown> | undefined): unknown {
  if (schema === undefined) return undefined;
  const { jsonSchema } = schema["~standard"] as DescribedSchema;
  const { toJSONSchema, toJsonSchema } = schema as unknown as Readonly<Record<string, unknown>>;
  for (const describe of [
    () => jsonSchema?.input({ target: "draft-2020-12" }),
    () => (typeof toJSONSchema === "function" ? (toJSONSchema.call(schema, { io: "input" }) as unknown) : undefined),
    () => (typeof toJsonSchema === "function" ? (toJsonSchema.call(schema) as unknown) : undefined),
  ]) {
    try {
      const described: unknown = describe();
      if (described !== undefined) return JSON.parse(JSON.stringify(described)) as unknown;
    } catch {
      // A type that JSON Schema lacks, such as a date: the next way, or none.
    }
  }
  return undefined;
}

/** Undefined: it is a workflow, or this process does not have its code. */
export function drawableOf({ registry }: RunAccess, name: string, version?: number): Drawable | undefined {
  const body = registry.findWorkflow(name, version);
  const flow = body && registry.findFlow(name, body.version);
  if (flow !== undefined) return { kind: "flow", body: flow };
  const graph = body && graphOfRun(body);
  return graph && { kind: "graph", described: describeGraphBody(graph) };
}

function pictureOf(drawable: Drawable | undefined): { readonly picture?: Picture } {
  if (drawable === undefined) return {};
  const { kind } = drawable;
  return {
    picture: kind === "graph" ? pictureOfGraph(drawable.described) : pictureOfFlow(describeFlowBody(drawable.body)),
  };
}
