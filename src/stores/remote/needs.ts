// Needs: which runs a list of writes names, before anything is asked.

import type { RunNumber, TurnWrite, Write } from "../../kernel/index.ts";

export class Needs {
  /** Runs by number. */
  readonly runs = new Set<RunNumber>();
  /** Runs that are there, by id. */
  readonly ids = new Set<string>();
  /** How many runs may be started. */
  starts = 0;
  /** Whether what is remembered can be enough for it. */
  isQuick = true;

  constructor(writes: readonly Write[]) {
    for (const write of writes) this.#add(write);
  }

  #add(write: Write): void {
    switch (write.write) {
      case "turn":
        return this.#addTurn(write);
      case "start":
        this.starts += 1;
        if (write.singleton !== undefined || write.debounce !== undefined) this.isQuick = false;
        return;
      case "turn-back":
      case "item-end":
      case "item-back":
        return void this.runs.add(write.run);
      case "message":
        this.isQuick = false;
        if (write.beforeStart !== undefined) this.starts += 1;
        return void this.ids.add(write.to);
      case "resume":
      case "pause":
      case "terminate":
        this.isQuick = false;
        return void this.ids.add(write.id);
      case "fork":
        this.isQuick = false;
        this.starts += 1;
        return;
      case "complete":
        this.isQuick = false;
        this.starts += write.children.length;
        return;
      case "put-schedule":
        this.isQuick = false;
        this.starts += write.starts.length;
        return;
      default:
        this.isQuick = false;
    }
  }

  #addTurn(turn: TurnWrite): void {
    this.runs.add(turn.run);
    for (const { to } of turn.messages)
      if (typeof to === "number") this.runs.add(to);
      else {
        this.isQuick = false;
        this.ids.add(to);
      }
    this.starts += turn.children.length + (turn.next === undefined ? 0 : 1);
  }
}
