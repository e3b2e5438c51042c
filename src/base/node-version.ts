// Node version: refuses to load on a Node that is too old, before any code of the package can fail for it.
//
// node-version.N1. The first file that every entry of the package evaluates (base/index.ts imports it first). The package is
//   compiled to a syntax that older versions can read (tsconfig.build.json): otherwise they would end with a syntax error.
//   package.json names both files under sideEffects, so that bundlers keep them.

import { RepriseError } from "./errors.ts";

export const OLDEST_NODE = "24.15";

/** One sentence if this version of Node is too old. */
export function nodeProblem(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split(".").map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined;
  return `reprise needs Node ${OLDEST_NODE} or newer; this is ${version}.`;
}

const problem = nodeProblem(process.versions.node);
if (problem !== undefined) throw new RepriseError("NODE_TOO_OLD", problem);
