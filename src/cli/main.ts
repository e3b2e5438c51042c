#!/usr/bin/env node
// reprise: the command line.

import { enableCompileCache } from "node:module";

// Before anything else is loaded: from the second time on a command starts in a third of the time.
enableCompileCache();

const { runCommandLine } = await import("./program.ts");
const code = await runCommandLine(process.argv.slice(2));
// A module of the user's may have left something open; what was printed must still get out.
await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
process.exit(code);
