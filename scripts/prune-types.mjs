// Prune types: removes the declarations from dist that no door of the package reaches. Nothing can import them, and they would be
// a third of all declarations. It must run on old versions of Node.

import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { root } from "./set-up.mjs";

/** `from "./run.ts"` and `import("./run.ts")`. */
const RELATIVE_IMPORT = /["'](\.\.?\/[^"']+)\.ts["']/g;

export function pruneTypes() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const pending = Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [resolve(root, types)]));
  const reached = new Set();
  while (pending.length > 0) {
    const path = pending.pop();
    if (reached.has(path)) continue;
    reached.add(path);
    for (const [, name] of readFileSync(path, "utf8").matchAll(RELATIVE_IMPORT))
      pending.push(resolve(dirname(path), `${name}.d.ts`));
  }
  const dist = join(root, "dist");
  for (const name of readdirSync(dist, { recursive: true })) {
    const path = join(dist, name);
    if (path.endsWith(".d.ts") && !reached.has(path)) rmSync(path);
  }
}
