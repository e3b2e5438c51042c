// vitest's global set-up: one place for what Node has read and compiled, while the test run lasts. Tests start hundreds of
// processes with the same sources, and reading those takes three quarters of what a short one does.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setUp(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "reprise-compiled-"));
  process.env["NODE_COMPILE_CACHE"] = folder;
  return () => {
    delete process.env["NODE_COMPILE_CACHE"];
    rmSync(folder, { recursive: true, force: true });
  };
}
