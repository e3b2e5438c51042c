// Run before each file of tests that is run elsewhere.

import { beforeEach } from "vitest";
import { dropWhenDone } from "./elsewhere.ts";
import { EXCEPTIONS } from "./exceptions.ts";

dropWhenDone();

beforeEach(({ task, skip }) => {
  const reason = EXCEPTIONS.get(task.name);
  if (reason !== undefined) skip(reason);
});
