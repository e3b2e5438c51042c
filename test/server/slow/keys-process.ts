// A server that never records the answer of an Idempotency-Key: node keys-process.ts <store>
//
// It sends its address, and `acted` when a request has had its effect; then the request waits for the kill.

import { createClient } from "reprise";
import { createServer } from "reprise/server";
import { storeOf } from "../../../src/stores/index.ts";
import { HOLD_MS, inbox } from "./keys-definitions.ts";

const source = storeOf(process.argv[2]!);
const client = await createClient({
  store: {
    async "~open"(options) {
      const store = await source["~open"](options);
      store.recordAnswer = () => {
        process.send?.("acted");
        return new Promise(() => undefined);
      };
      return store;
    },
  },
  definitions: [inbox],
  logger: false,
});
const { url } = await createServer(client, { limits: { requestMs: HOLD_MS } }).listen({ port: 0 });
process.send?.(url);
