// A migrated run is bundled and accepted.

import { createEngine, promise, workflow } from "reprise";
import { expect, test } from "vitest";
import { StoreWithRuns } from "../cli/store-with-runs.ts";
import { bundleText, FORMS, readingStore, reportsOf, verdictOf } from "./bundled.ts";

test("a bundle of a migrated run is accepted in every form", async () => {
  const define = (version: number) =>
    workflow("parcel", { ports: { go: promise<string>() }, version }, async (ctx) => ctx.promise("go"));
  const definitions = [define(1), define(2)] as const;
  using runs = new StoreWithRuns(definitions);
  {
    await using engine = await createEngine({ store: runs.url, definitions });
    const run = await engine.start(definitions[0], undefined, { id: "p" });
    await run.migrate({ version: 2 });
    await run.resolve("go", "sent");
    expect(await run.result()).toBe("sent");
  }
  for (const form of FORMS) {
    const text = await readingStore(runs, (store) => bundleText(store, "p", form));
    expect((await reportsOf(Buffer.from(text))).map(verdictOf)).toEqual(["fine"]);
  }
});
