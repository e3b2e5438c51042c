// reprise/testing: an engine with virtual time and simulated crashes, saved journals, and the conformance cases of a store.

export { crashEverywhere, type CrashOptions, type CrashReport } from "./crash-everywhere.ts";
export { exportJournal, expectReplay, saveJournal, type SavedEntry, type SavedJournal } from "./saved-journal.ts";
export { storeCases, type StoreCase, type StoreClock, type StoreTest, type UserSql } from "./store-cases.ts";
export { createStoreTest, type StoreTestOptions } from "./store-test.ts";
export { stub, type Stub } from "./stub.ts";
export { createTestEngine, type TestEngine, type TestEngineOptions } from "./test-engine.ts";
