// Server host: what the code of every operation gets: the engine or client, its store, and the machine as ports.

import type { Clock, Random, Timers } from "../base/index.ts";
import type { AnswerOf, BodyOf, Operation, QueryOf, Role } from "../contract/index.ts";
import type { Client } from "../engine/index.ts";
import type { Logger, Store } from "../kernel/index.ts";

/** What operations work on. One per server. */
export interface ServerHost {
  readonly client: Client;
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
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
  /** Aborts when the client disconnects, the time of the request is over, or the server closes. */
  readonly signal: AbortSignal;
}

/** The code of an operation: its answer as data, or a response where headers or a stream matter. */
export type HandlerOf<O extends Operation> = (
  call: Call<O>,
) => AnswerOf<O> | Response | Promise<AnswerOf<O> | Response>;

/** The code of a group of operations: every operation must have one. */
export type HandlersOf<G extends Readonly<Record<string, Operation>>> = { readonly [K in keyof G]: HandlerOf<G[K]> };
