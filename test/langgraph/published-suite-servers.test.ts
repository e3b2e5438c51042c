// The suite that LangGraph publishes for checkpointers, on real servers (published-suite.test.ts runs it on SQLite).

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { deltaChannelHistoryTests, specTest } from "@langchain/langgraph-checkpoint-validation";
import { RepriseSaver } from "reprise/langgraph";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";

const RUNNER = { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it };
Object.assign(globalThis, RUNNER);
afterAll(() => {
  for (const name of Object.keys(RUNNER)) Reflect.deleteProperty(globalThis, name);
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `the published suite on ${kind === "postgres" ? "PostgreSQL" : "MariaDB"}`, () => {
    const databases = new Map<RepriseSaver, FreshDatabase>();
    const initializer = {
      checkpointerName: `RepriseSaver on ${kind}`,
      beforeAllTimeout: 60_000,
      async createCheckpointer(): Promise<RepriseSaver> {
        const database = await freshDatabase(kind);
        const saver = new RepriseSaver({ store: database.url });
        databases.set(saver, database);
        return saver;
      },
      async destroyCheckpointer(saver: RepriseSaver): Promise<void> {
        await saver.close();
        await databases.get(saver)?.[Symbol.asyncDispose]();
      },
    };
    specTest(initializer);
    // The one part that is not in `specTest`.
    deltaChannelHistoryTests(initializer);
  });
