// What `reprise` means elsewhere.

import * as reprise from "../../src/index.ts";
import { elsewhere } from "./elsewhere.ts";

export * from "../../src/index.ts";

export const createEngine: typeof reprise.createEngine = (options) =>
  reprise.createEngine({ ...options, store: elsewhere(options.store) });

export const rekey: typeof reprise.rekey = (options) => reprise.rekey({ ...options, store: elsewhere(options.store) });
