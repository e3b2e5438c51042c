// Worker process: one worker of a rig; runs until its parent disconnects or dies.

import { openEngine, usageOfThisProcess } from "./rig.ts";

const [url] = process.argv.slice(2);
if (url === undefined) throw new Error("Expected the address of a database.");
const engine = await openEngine(url, true);

process.on("message", () => process.send?.(usageOfThisProcess()));
process.on("disconnect", () => {
  void engine.close().then(() => process.exit(0));
});
process.send?.("ready");
