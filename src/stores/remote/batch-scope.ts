// BatchScope: the runs that a list of writes names, known before any query.

import type { RunNumber, TurnWrite, Write } from "../../kernel/index.ts";

export class BatchScope {
  /** Runs by number. */
  readonly runs = new Set<RunNumber>();
  /** Existing runs, by id. */
  readonly ids = new Set<string>();
  /** The most runs that the list may start. */
  starts = 0;
  /** Whether cached rows can be enough for the list. */
  isOptimistic = true;

  constructor(writes: readonly Write[]) {
    for (const write of writes) this.#add(write);
  }

  #add(write: Write): void {
    switch (write.write) {
      case "turn":
        return this.#addTurn(write);
      case "start":
        this.starts += 1;
        if (write.singleton !== undefined || write.debounce !== undefined) this.isOptimistic = false;
        return;
      case "return-turn":
      case "end-item":
      case "return-item":
        return void this.runs.add(write.run);
      case "message":
        this.isOptimistic = false;
        if (write.beforeStart !== undefined) this.starts += 1;
        return void this.ids.add(write.to);
      case "resume":
      case "pause":
      case "terminate":
        this.isOptimistic = false;
        return void this.ids.add(write.id);
      case "fork":
        this.isOptimistic = false;
        this.starts += 1;
        return;
      case "complete":
        this.isOptimistic = false;
        this.starts += write.children.length;
        return;
      case "put-schedule":
        this.isOptimistic = false;
        this.starts += write.starts.length;
        return;
      default:
        this.isOptimistic = false;
    }
  }

  #addTurn(turn: TurnWrite): void {
    this.runs.add(turn.run);
    for (const { to } of turn.messages)
      if (typeof to === "number") this.runs.add(to);
      else {
        this.isOptimistic = false;
        this.ids.add(to);
      }
    for (const { to } of turn.settlements ?? []) {
      this.isOptimistic = false;
      this.ids.add(to);
    }
    this.starts += turn.children.length + (turn.next === undefined ? 0 : 1);
  }
}
