// Claims in a hundred timings of each kind, with and without encryption. test/receipts/claims.test.ts says what is compared.

import { test } from "vitest";
import { CASES, expectOneClaim } from "../receipts/executions.ts";

test.each(CASES)(
  "the $how runs of a $kind have one claim in a hundred timings",
  { timeout: 300_000 },
  ({ kind, isEncrypted }) => expectOneClaim(kind, 100, isEncrypted),
);
