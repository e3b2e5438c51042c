// Eval scores: what `reprise eval` scores when the code names no scorer.

import { isDeepStrictEqual } from "node:util";
import type { Scorer } from "../engine/index.ts";

/** `output`: the fork has the output of its run. `ended`: the fork ended as its run did, and was not stopped. */
export const defaultScores: Readonly<Record<"output" | "ended", Scorer>> = {
  output: (was, is) => Number(was.status === is.status && isDeepStrictEqual(was.output, is.output)),
  ended: (was, is) => Number(was.status === is.status),
};
