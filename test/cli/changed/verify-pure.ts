// The definitions of verify, with a pure task that returns another result.

import { buildSquare } from "../verify-definitions.ts";

export const { squared, pure } = buildSquare((n) => n * n + 1);
