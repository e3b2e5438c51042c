// Every promise of a store, in a file, and again with every payload encrypted.

import { describe, test } from "vitest";
import { aesGcm } from "../../src/base/index.ts";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSqliteWorld } from "./sqlite-world.ts";

describe("SQLite in a file", () => {
  for (const { name, run } of storeCases) {
    test(name, async () => {
      await using world = createSqliteWorld();
      await run(world);
    });
  }
});

const codec = aesGcm({ keys: { one: new Uint8Array(32).fill(1) }, current: "one" });

describe("SQLite in a file, encrypted", () => {
  for (const { name, run } of storeCases) {
    test(name, async () => {
      await using world = createSqliteWorld({ codec, durability: "relaxed" });
      await run(world);
    });
  }
});
