// Run access: the runs of an engine or client by their id alone, for rooms that work beside it, such as a server.
//
// run-access.A1. A run whose definition this process does not have gets a handle all the same: it reads, controls the run and delivers
//   messages to the ports that the caller names, and it never runs code (docs/decisions/0019).

import type { Ports, Redaction, RunRecord } from "../kernel/index.ts";
import type { Registry } from "../process/index.ts";
import { workflow, workflowBody, type WorkflowBody } from "../workflow/index.ts";
import type { Run, RunInfo } from "./api.ts";
import { readInfo } from "./read-info.ts";
import { startRun } from "./start-run.ts";
import { RunHandle, type RunHandleHost } from "./run-handle.ts";

/** What a room beside the engine needs besides its store. */
export interface RunAccess {
  /** The definitions of this process. */
  readonly registry: Registry;
  readonly redaction: Redaction;
  /** Whether this process has the code of the run. */
  has(record: Pick<RunRecord, "definition" | "version">): boolean;
  /** As `engine.start`, by name and version; default: the newest version. */
  start(definition: string, version: number | undefined, input: unknown, options: object): Promise<RunRecord>;
  /** What `run.info()` says, also of an earlier generation. */
  info(record: RunRecord): Promise<RunInfo>;
  /** run-access.A1. `ports` are those of a run without code. */
  handle(record: Pick<RunRecord, "id" | "definition" | "version">, ports?: Ports): Run<any>;
}

export function runAccess(host: RunHandleHost): RunAccess {
  const { registry, redaction } = host;
  return {
    registry,
    redaction,
    has: ({ definition, version }) => registry.findWorkflow(definition, version) !== undefined,
    start: (definition, version, input, options) => {
      host.checkOpen();
      return startRun(host, registry.getWorkflow(definition, version), input, options);
    },
    info: (record) => readInfo(host, record),
    handle: ({ id, definition, version }, ports = {}) => {
      host.checkOpen();
      const known = registry.findWorkflow(definition, version) ?? registry.findWorkflow(definition);
      return new RunHandle(host, known ?? placeholder(definition, version, ports), id);
    },
  };
}

function placeholder(definition: string, version: number, ports: Ports): WorkflowBody {
  return workflowBody(
    workflow(definition, { ports, version }, () => Promise.reject(new Error("A placeholder definition cannot run."))),
  );
}

/** The access to the runs of a client or an engine; undefined for anything else. */
export function runAccessOf(client: unknown): RunAccess | undefined {
  const hasAccess = typeof client === "object" && client !== null && "~access" in client;
  return hasAccess ? (client["~access"] as RunAccess) : undefined;
}
