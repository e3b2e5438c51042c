// `reprise/sqlite` in cross-store tests: opens the store under test.

import type { sqlite as real } from "../../src/stores/sqlite/index.ts";
import { sourceAt } from "./store-under-test.ts";

export const sqlite: typeof real = Object.assign((path: string) => sourceAt(path), { "~kind": "sqlite" } as const);
