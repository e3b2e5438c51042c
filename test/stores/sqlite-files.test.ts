// The store cases on SQLite files, without and with encrypted payloads.

import { describe, test } from "vitest";
import { aesGcm } from "../../src/base/index.ts";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";

describe("SQLite in a file", () => {
  for (const { name, run } of storeCases) {
    test(name, async () => {
      await using fixture = createSqliteFixture();
      await run(fixture);
    });
  }
});

const codec = aesGcm({ keys: { one: new Uint8Array(32).fill(1) }, current: "one" });

describe("SQLite in a file, encrypted", () => {
  for (const { name, run } of storeCases) {
    test(name, async () => {
      await using fixture = createSqliteFixture({ codec, durability: "relaxed" });
      await run(fixture);
    });
  }
});
