// Backend fixture: runs the backend cases on one backend.

import { expect, test } from "vitest";
import type { Backend, Connection } from "../../src/stores/remote/backend.ts";
import { BACKEND_CASES } from "./backend-cases.ts";

export interface OpenBackends {
  readonly backend: Backend;
  readonly other: Backend;
}

/** One test per case, each on an empty database. `skips`: the name of a case → why it does not apply. */
export function testBackend(open: () => Promise<OpenBackends>, skips: ReadonlyMap<string, string> = new Map()): void {
  test("every skip names a case", () => {
    const names = new Set(BACKEND_CASES.map(({ name }) => name));
    expect([...skips.keys()].filter((name) => !names.has(name))).toEqual([]);
  });
  for (const { name, run } of BACKEND_CASES) {
    const reason = skips.get(name);
    test.skipIf(reason !== undefined)(reason === undefined ? name : `${name} (${reason})`, async () => {
      const { backend, other } = await open();
      const pool: Connection[] = [];
      const connect = async (of: Backend = backend): Promise<Connection> => {
        const connection = await of.connect();
        pool.push(connection);
        return connection;
      };
      try {
        await run({ backend, other, connect });
      } finally {
        for (const connection of pool) connection.destroy();
        await Promise.all([backend.close(), other.close()]);
      }
      expect(pool.length).toBeGreaterThan(0);
    });
  }
}
