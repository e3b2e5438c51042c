// Scheduler: how a graph's run proceeds, in figures (seed 000). The types; who counts is in the room of graphs.

/** The six figures of seed 000, over the life of a run. */
export interface SchedulerMetrics {
  /** Steps that are complete. */
  readonly totalSteps: number;
  /** Attempts of nodes that have ended, whatever their end. */
  readonly totalNodesExecuted: number;
  /** From the checkpoint before to the step's own. */
  readonly avgStepLatencyMs: number;
  /** How many items of one step waited in memory at most. */
  readonly maxQueueDepth: number;
  /** Attempts that failed and were followed by another, or will be. */
  readonly totalRetries: number;
  /** How often an item found no room in the queue and had to wait. */
  readonly totalBackpressureBlocks: number;
}
