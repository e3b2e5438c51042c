// Preloaded with `node --import`: at exit, the last line of standard error lists every module that the program loaded.

import { writeSync } from "node:fs";
import { registerHooks } from "node:module";

const loaded: string[] = [];

registerHooks({
  load(url, context, next) {
    loaded.push(url);
    return next(url, context);
  },
});

process.on("exit", () => writeSync(2, `\n${JSON.stringify(loaded)}\n`));
