// Package version: the name and version of this package. A constant, because a bundled program has no package.json to read; a test
// compares it with package.json.

/** As runs and receipts name the engine. */
export const ENGINE_NAME = "reprise/0.2.0";
