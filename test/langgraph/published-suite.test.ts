// The suite that LangGraph publishes for checkpointers. It expects the functions of a test runner as globals.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  deltaChannelHistoryTests,
  specTest,
  type CheckpointSaverTestInitializer,
} from "@langchain/langgraph-checkpoint-validation";
import { aesGcm, type PayloadCodec, type StoreSource } from "reprise";
import { RepriseSaver } from "reprise/langgraph";
import { simulatedSource } from "../stores/remote-fixture.ts";

const RUNNER = { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it };
Object.assign(globalThis, RUNNER);
afterAll(() => {
  for (const name of Object.keys(RUNNER)) Reflect.deleteProperty(globalThis, name);
});

function inMemory(
  checkpointerName: string,
  codec?: PayloadCodec,
  store: () => string | StoreSource = () => "sqlite::memory:",
): CheckpointSaverTestInitializer<RepriseSaver> {
  return {
    checkpointerName,
    createCheckpointer: () => new RepriseSaver({ store: store(), codec }),
    destroyCheckpointer: (saver) => saver.close(),
  };
}

const plain = inMemory("RepriseSaver");
specTest(plain);
// The one part that is not in `specTest`.
deltaChannelHistoryTests(plain);

const codec = aesGcm({ keys: { one: new Uint8Array(32).fill(1) }, current: "one" });
const encrypted = inMemory("RepriseSaver, encrypted", codec);
// Without the 648 combinations of arguments to `list`.
specTest(encrypted, ["put", "putWrites", "getTuple", "deleteThread"]);
deltaChannelHistoryTests(encrypted);

const remote = inMemory("RepriseSaver behind a network", undefined, simulatedSource);
specTest(remote, ["put", "putWrites", "getTuple", "deleteThread"]);
deltaChannelHistoryTests(remote);
