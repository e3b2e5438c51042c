// Node context: the first argument of a node's function.

import type { DurableContext } from "../workflow/index.ts";

/** The first argument of a node's function. */
export interface NodeContext<M = {}> extends DurableContext<M> {
  /** The step that runs this node, from 1. */
  readonly step: number;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Sends a message through the outbox, in the commit of this node's result. A failed attempt sends nothing. */
  send(destination: string, payload?: unknown): void;
  /** Names the checkpoint of this step. If several nodes name it, the last one in written order wins. */
  label(name: string): void;
}
