// Runs the cases of backends on one of them.

import { expect, test } from "vitest";
import type { Backend, Link } from "../../src/stores/remote/backend.ts";
import { BACKEND_CASES } from "./backend-cases.ts";

export interface OpenBackends {
  readonly backend: Backend;
  readonly other: Backend;
}

/** One test per case, each on a database that is empty. `skips`: name of a case → why it cannot hold there. */
export function testBackend(open: () => Promise<OpenBackends>, skips: ReadonlyMap<string, string> = new Map()): void {
  test("every skip names a case", () => {
    const names = new Set(BACKEND_CASES.map(({ name }) => name));
    expect([...skips.keys()].filter((name) => !names.has(name))).toEqual([]);
  });
  for (const { name, run } of BACKEND_CASES) {
    const reason = skips.get(name);
    test.skipIf(reason !== undefined)(reason === undefined ? name : `${name} (${reason})`, async () => {
      const { backend, other } = await open();
      const links: Link[] = [];
      const connect = async (of: Backend = backend): Promise<Link> => {
        const link = await of.connect();
        links.push(link);
        return link;
      };
      try {
        await run({ backend, other, connect });
      } finally {
        for (const link of links) link.destroy();
        await Promise.all([backend.close(), other.close()]);
      }
      expect(links.length).toBeGreaterThan(0);
    });
  }
}
