// Bundle text: a bundle that is in memory.

import type { BundleInput } from "./bundle-lines.ts";

export function bundleText(text: string): BundleInput {
  const bytes = Buffer.from(text);
  return {
    async *read(from) {
      yield bytes.subarray(from);
    },
  };
}

/** Whether a text begins as a bundle does. */
export function isBundleText(text: string): boolean {
  return /^\{"form":"[a-z-]+","reprise":"bundle\//.test(text);
}
