// The same graph today: it greets in other words, and gets another answer.

import { buildTalk } from "./greeting-graph.ts";

export const talk = buildTalk("good day", "not so well");
