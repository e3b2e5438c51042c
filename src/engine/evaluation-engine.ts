// Evaluation engine: evaluates copies of runs in a SQLite file of their own. It delivers no message, and deletes no run.

import { systemClock, systemRandom, systemTimers, type PayloadCodec } from "../base/index.ts";
import type { AnyTask, Definition, RedactOptions } from "../kernel/index.ts";
import { sqlite } from "../stores/index.ts";
import type { EngineCore } from "./engine.ts";
import { checkClientOptions } from "./engine-options.ts";

/** A killed evaluation is continued soon: no other worker works on the file. */
const LEASE_MS = 2_000;

export interface EvaluationEngineOptions {
  /** The file. It exists. */
  readonly path: string;
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly codec?: PayloadCodec;
  readonly redact?: false | RedactOptions;
}

export async function openEvaluationEngine(options: EvaluationEngineOptions): Promise<EngineCore> {
  const { path, ...given } = options;
  const { parts, codec } = checkClientOptions({ ...given, store: sqlite(path), logger: false }, "evaluate");
  const ports = {
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    durability: "relaxed",
    codec,
  } as const;
  const store = await sqlite(path)["~open"](ports);
  const { openCopyEngine } = await import("./scratch-engine.ts");
  const core = openCopyEngine({ ...parts, leaseMs: LEASE_MS }, store, true);
  await core.begin();
  return core;
}
