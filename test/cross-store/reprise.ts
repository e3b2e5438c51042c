// The package as tests see it on another store: every entry point opens the store under test.

import * as reprise from "../../src/index.ts";
import { storeUnderTest } from "./store-under-test.ts";

export * from "../../src/index.ts";

export const createEngine: typeof reprise.createEngine = (options) =>
  reprise.createEngine({ ...options, store: storeUnderTest(options.store) });

export const createClient: typeof reprise.createClient = (options) =>
  reprise.createClient({ ...options, store: storeUnderTest(options.store) });

export const rekey: typeof reprise.rekey = (options) =>
  reprise.rekey({ ...options, store: storeUnderTest(options.store) });
