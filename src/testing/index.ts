// reprise/testing: an engine under virtual time, crashes on demand, golden runs, and the promises of the Store port.

export { crashEverywhere, type CrashOptions, type CrashReport } from "./crash-everywhere.ts";
export { exportJournal, expectReplay, saveJournal, type SavedEntry, type SavedJournal } from "./saved-journal.ts";
export { storeCases, type StoreCase, type StoreClock, type StoreTest, type UserSql } from "./store-cases.ts";
export { createStoreTest, type StoreTestOptions } from "./store-test.ts";
export { stub, type Stub } from "./stub.ts";
export { createTestEngine, type TestEngine, type TestEngineOptions } from "./test-engine.ts";
