// `reprise/testing` in cross-store tests: uses the store under test.

import * as testing from "../../src/testing/index.ts";
import { storeUnderTest } from "./store-under-test.ts";

export * from "../../src/testing/index.ts";

export const createTestEngine: typeof testing.createTestEngine = (options) =>
  testing.createTestEngine({ ...options, store: storeUnderTest(options.store ?? "sqlite::memory:") });
