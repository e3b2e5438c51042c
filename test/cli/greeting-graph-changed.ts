// The changed graph: another greeting and another answer.

import { buildGreeting } from "./greeting-graph.ts";

export const greeting = buildGreeting("good day", "not so well");
