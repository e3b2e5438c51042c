// The changed graph: another greeting and another answer.

import { buildTalk } from "./greeting-graph.ts";

export const talk = buildTalk("good day", "not so well");
