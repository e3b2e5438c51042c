// examples/federation: three processes, one command.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test(
  "the example prints that the hub executed, the auditor verified, and no payload left",
  { timeout: 120_000 },
  async () => {
    const main = fileURLToPath(new URL("../../examples/federation/main.ts", import.meta.url));
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--conditions=reprise-source", main]);
    const lines = stdout.split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        'edge     order-1 → {"paid":4990,"picture":"a picture of a lamp"}',
        "edge     its log has 4 records",
        "auditor  pulled 4 records, every one signed by the edge",
        "auditor  order-2: order, completed",
        "auditor  order-2: 12 lines of proof, without payloads",
        expect.stringMatching(/^auditor {2}\$ reprise verify: verified {2}order-2: .*signed by edge\/[0-9a-f]{16}/),
      ]),
    );
    expect(stderr).toBe("");
  },
);
