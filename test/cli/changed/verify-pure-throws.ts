// The definitions of verify, with a pure task that cannot be executed here.

import { buildSquare } from "../verify-definitions.ts";

export const { squared, pure } = buildSquare(() => {
  throw new Error("no license on this machine");
});
