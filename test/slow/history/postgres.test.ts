import { afterAll } from "vitest";
import { endSharedServers } from "../../faults/subject.ts";
import { describeOn } from "../../servers/index.ts";
import { historyOn } from "./history-on.ts";

describeOn("postgres", "lost history", () => {
  afterAll(endSharedServers);
  historyOn("postgres");
});
