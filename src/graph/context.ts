// What a node's function is given: the durable context, and where in the graph it stands.

import type { DurableContext } from "../workflow/index.ts";

/** The first argument of a node's function. */
export interface NodeContext<M = {}> extends DurableContext<M> {
  /** The step this node is part of, from 1. */
  readonly step: number;
  /** 0 for the first attempt. */
  readonly attempt: number;
  /** Sends a message to the outside in the commit of this node's result: an attempt that fails has sent nothing. */
  send(destination: string, payload?: unknown): void;
  /** Names the checkpoint of this step; of several names the last in the order written counts. */
  label(name: string): void;
}
