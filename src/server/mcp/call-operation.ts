// Call operation: an operation of the HTTP API, called inside the server for a caller that is known already.
//
// call-operation.C1. The call passes what a request passes after its caller is known: role, schemas of query and body, scopes, time limit,
//   audit. So a tool allows nothing that the operation does not.
// call-operation.C2. Payloads are in the plain form, which redacts (view.V1).

import { InvariantError, RepriseError } from "../../base/index.ts";
import type { HttpRoute } from "../../http/index.ts";
import { auditLine, isAudited } from "../auth/audit.ts";
import { hasRole, roleRequired } from "../auth/role.ts";
import type { Caller, ServerHost } from "../host.ts";
import type { OperationRouteCaller } from "../operation-route.ts";
import type { ImplementedOperation } from "../operations.ts";
import { refusalOf } from "../problem.ts";

/** What an operation is called with. */
export interface OperationInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

export interface CallableOperation {
  readonly implemented: ImplementedOperation;
  readonly route: HttpRoute<OperationRouteCaller>;
}

export interface OperationCallerOptions {
  readonly host: ServerHost;
  /** By the key of the operation. */
  readonly operations: ReadonlyMap<string, CallableOperation>;
  readonly bodyBytes: number;
}

/** Calls operations; the store is opened with the first use, if it is not open yet. */
export interface Operations {
  /** call-operation.C1. The answer as JSON; undefined: it has none. */
  call(id: string, caller: Caller, input: OperationInput, signal: AbortSignal): Promise<unknown>;
  host(): Promise<ServerHost>;
}

/** Operations of a store that `open` opens, again if it failed. */
export function lazyOperations(open: () => Promise<Operations>): Operations {
  let opening: Promise<Operations> | undefined;
  const opened = (): Promise<Operations> => {
    opening ??= open();
    opening.catch(() => (opening = undefined));
    return opening;
  };
  return {
    call: async (...call) => (await opened()).call(...call),
    host: async () => (await opened()).host(),
  };
}

/** Calls operations of one server. */
export class OperationCaller implements Operations {
  readonly #host: ServerHost;
  readonly #operations: OperationCallerOptions["operations"];
  readonly #bodyBytes: number;

  constructor({ host, operations, bodyBytes }: OperationCallerOptions) {
    this.#host = host;
    this.#operations = operations;
    this.#bodyBytes = bodyBytes;
  }

  host(): Promise<ServerHost> {
    return Promise.resolve(this.#host);
  }

  #find(id: string): CallableOperation {
    const found = this.#operations.get(id);
    if (found === undefined) throw new InvariantError(`There is no operation ${id}.`);
    return found;
  }

  async call(id: string, caller: Caller, input: OperationInput, signal: AbortSignal): Promise<unknown> {
    const { implemented, route } = this.#find(id);
    const { operation } = implemented;
    const { params = {}, query = {}, body } = input;
    this.#checkRole(implemented, caller, params);
    const url = urlOf(operation.path, params, query);
    const text = operation.body === undefined ? undefined : JSON.stringify(body ?? {});
    if (text !== undefined && Buffer.byteLength(text) > (operation.maxBytes ?? this.#bodyBytes))
      throw new RepriseError("PAYLOAD_TOO_LARGE", `The arguments of ${id} are larger than the operation takes.`);
    const request = new Request(url, {
      method: operation.method,
      headers: { accept: "application/json", ...(text !== undefined && { "content-type": "application/json" }) },
      ...(text !== undefined && { body: text }),
      signal,
    });
    const response = await route.handle({
      request,
      url,
      params: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, encodeURIComponent(value)])),
      caller: { name: `token ${caller.name}`, caller },
      signal,
      body: async (use) => use(Buffer.from(text ?? "")),
      json: () => Promise.resolve(body ?? {}),
    });
    const answer = await response.text();
    return answer === "" ? undefined : (JSON.parse(answer) as unknown);
  }

  #checkRole({ id, operation }: ImplementedOperation, caller: Caller, params: Readonly<Record<string, string>>): void {
    if (operation.role === "public" || hasRole(caller, operation.role)) return;
    const error = roleRequired(id, operation.role, caller);
    // audit.A2
    if (isAudited(operation))
      auditLine(this.#host.logger, { name: id, operation, caller, params, body: undefined, ...refusalOf(error) });
    throw error;
  }
}

function urlOf(path: string, params: Readonly<Record<string, string>>, query: Readonly<Record<string, unknown>>): URL {
  const url = new URL(
    path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(params[name] ?? "")),
    "http://localhost",
  );
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? (value as readonly unknown[]) : [value])
      if (one !== undefined) url.searchParams.append(name, textOf(one));
  return url;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
