// Set-up of each test file on another store.

import { beforeEach } from "vitest";
import { dropAfterAll } from "./store-under-test.ts";
import { EXCEPTIONS } from "./exceptions.ts";

dropAfterAll();

beforeEach(({ task, skip }) => {
  const reason = EXCEPTIONS.get(task.name);
  if (reason !== undefined) skip(reason);
});
