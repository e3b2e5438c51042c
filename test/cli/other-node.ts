// Other Node: a second version of Node, of the registry, that differs from the one that runs the tests in its V8.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./cli-process.ts";

/** The package `node-26`; OTHER_NODE names another program. */
export const OTHER_NODE = process.env["OTHER_NODE"] ?? join(ROOT, "node_modules/node-26/bin/node");

export const hasOtherNode = existsSync(OTHER_NODE);
