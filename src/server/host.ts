// Server host: what the code of every operation gets: the engine or client, its store, and the machine as ports.

import type { Clock, Random, Timers } from "../base/index.ts";
import type { AnswerOf, BodyOf, Operation, QueryOf, Role, SiteBody } from "../contract/index.ts";
import type { Client } from "../engine/index.ts";
import type { Federation } from "../federation/index.ts";
import type { Logger, Store } from "../kernel/index.ts";
import type { ServerAccess } from "./auth/server-access.ts";
import type { CheckedHook } from "./hooks/hook.ts";
import type { LogRing } from "./log-ring.ts";
import type { MetricsPage } from "./metrics/create-metrics.ts";
import type { PayloadForm } from "./wire-payload.ts";

/** What an operator must know now. */
export type Notice = SiteBody["notices"][number];

/** What operations work on. One per server. */
export interface ServerHost {
  readonly client: Client;
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
  /** Who may do what, and what the server signs. */
  readonly access: ServerAccess;
  /** The path that the server is mounted at, without a slash at its end. */
  readonly basePath: string;
  /** The last lines of `ctx.log` in this process; undefined: it keeps none. */
  readonly logs: LogRing | undefined;
  /** What an operator must know now, for `GET /v1/site`. */
  readonly notices: () => readonly Notice[];
  /** Whether the process of the server also executes runs. */
  readonly executes: boolean;
  /** The federated site of this store; undefined: it has none. */
  readonly federation: Federation | undefined;
  /** Undefined: nothing is counted. */
  readonly metrics: MetricsPage | undefined;
  /** The webhooks that the server takes, by name. */
  readonly hooks: ReadonlyMap<string, CheckedHook>;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
}

/** Who makes a request. Made by the authentication; `public` operations have none. */
export interface Caller {
  /** The name of the token, for limits, audit and `by`. */
  readonly name: string;
  readonly role: Role;
  /** Only runs of these definitions; absent: all. */
  readonly definitions?: readonly string[];
  /** Only runs with one of these tags; absent: all. */
  readonly tags?: readonly string[];
  /** Only these queues; absent: all. */
  readonly queues?: readonly string[];
  /** Only this run, and of it only this stream: a browser token. */
  readonly run?: string;
  readonly stream?: string;
}

/** A request whose route, caller, query and body were checked. */
export interface Call<O extends Operation = Operation> {
  readonly host: ServerHost;
  readonly request: Request;
  readonly url: URL;
  readonly caller: Caller | undefined;
  /** The decoded segments of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: QueryOf<O>;
  readonly body: BodyOf<O>;
  /** The form of payloads in the request and in the answer: `payloadToWire`, `payloadFromWire`. */
  readonly payloads: PayloadForm;
  /** The header `Idempotency-Key`: the same key means the same act. */
  readonly idempotencyKey: string | undefined;
  /** The key together with its caller, operation and path, as an id (idempotency.I2). */
  readonly keyId: string | undefined;
  /** The header `traceparent` (W3C Trace Context), if it is valid. */
  readonly traceparent: string | undefined;
  /** `Prefer: wait=20`: how long the client waits for a result; 0 without it. */
  readonly waitMs: number;
  /** Aborts when the client disconnects, the time of the request is over, or the server closes. */
  readonly signal: AbortSignal;
}

/** The code of an operation: its answer as data, or a response where headers or a stream matter. */
export type HandlerOf<O extends Operation> = (
  call: Call<O>,
) => AnswerOf<O> | Response | Promise<AnswerOf<O> | Response>;

/** The code of a group of operations: every operation must have one. */
export type HandlersOf<G extends Readonly<Record<string, Operation>>> = { readonly [K in keyof G]: HandlerOf<G[K]> };
