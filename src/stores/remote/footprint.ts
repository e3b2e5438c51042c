import type { EpochMs } from "../../base/index.ts";
import type { Write } from "../../kernel/index.ts";
import type { Mode } from "./word.ts";
import type { WorkingSet } from "./working-set.ts";
export function wantFootprint(ws: WorkingSet, mode: Mode, now: EpochMs, write: Write): void {
  void ws;
  void mode;
  void now;
  void write;
}
