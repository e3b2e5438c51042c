// How the agent is evaluated: recorded runs are repeated with the second model. Nothing but that model is called.
//
//   npx reprise eval examples/support-agent/evals.ts --store sqlite:support.db --fail-under refunds=1

import { evaluation } from "reprise";
import { support } from "./agent.ts";
import { refundTask } from "./tools.ts";

export { refundTask, support };

/** The amounts that an answer names. */
const amounts = (answer = ""): string => (answer.match(/\d+\.\d\d EUR/g) ?? []).toSorted().join();

export const secondModel = evaluation(support, {
  models: { fast: "second" },
  score: {
    refunds: (was, is) => Number(amounts(was.output) === amounts(is.output)),
    brevity: (was, is) => Number((is.output?.length ?? Infinity) < (was.output?.length ?? 0)),
  },
});
