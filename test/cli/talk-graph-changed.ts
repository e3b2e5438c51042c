// The same graph today: it greets in other words, and gets another answer.

import { buildTalk } from "./talk-graph.ts";

export const talk = buildTalk("good day", "not so well");
