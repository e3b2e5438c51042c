// What `reprise/testing` means elsewhere.

import * as testing from "../../src/testing/index.ts";
import { elsewhere } from "./elsewhere.ts";

export * from "../../src/testing/index.ts";

export const createTestEngine: typeof testing.createTestEngine = (options) =>
  testing.createTestEngine({ ...options, store: elsewhere(options.store ?? "sqlite::memory:") });
