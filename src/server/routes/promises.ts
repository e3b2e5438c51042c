// Promises of all runs: the open ones, and how recent ones were settled.

import type { promiseOperations } from "../../contract/index.ts";
import type { HandlersOf } from "../host.ts";
import { listOpenPromises, listSettledPromises } from "../read/promise-lists.ts";
import { DEFAULT_LIMIT, timeOf } from "../read/run-selection.ts";
import { viewOf } from "../read/view.ts";

const DAY_MS = 86_400_000;
const HISTORY_LIMIT = 100;

export const promiseHandlers: HandlersOf<typeof promiseOperations> = {
  listPromises(call) {
    const { limit = DEFAULT_LIMIT, after, name, definition, sort = "run" } = call.query ?? {};
    return listOpenPromises(call.host.store, call.caller, { limit, after, name, definition, sort }, viewOf(call));
  },
  listSettledPromises(call) {
    const { since, limit = HISTORY_LIMIT, definition, name } = call.query ?? {};
    const { store } = call.host;
    const from = since === undefined ? store.now() - DAY_MS : timeOf(since, "since");
    return listSettledPromises(store, call.caller, { since: from, limit, definition, name }, viewOf(call));
  },
};
