#!/usr/bin/env node
// reprise: the command line.

import module from "node:module";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  process.stderr.write(`reprise needs Node 24.15 or newer; this is ${process.versions.node}.\n`);
  process.exit(2);
}

// Before anything else is loaded: from the second time on a command starts in a third of the time.
module.enableCompileCache();

const { runCommandLine } = await import("./program.ts");
const code = await runCommandLine(process.argv.slice(2));
// A module of the user's may have left something open; what was printed must still get out.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
process.exit(code);
