// The part of this room that runs without Node: what `reprise/client` needs in a browser. The second entrance of base; test/tidy.test.ts
// names it, and test/server/client-bundle.test.ts checks that nothing behind it imports a module of Node.

export { decode, encode } from "./codec.ts";
export { toMs, type Duration } from "./duration.ts";
export { isErrorCode, type ErrorCode } from "./error-catalogue.ts";
export { CancelledError, RepriseError } from "./errors.ts";
export { checkName, checkRunId } from "./names.ts";
export { checkOptionNames } from "./options.ts";
