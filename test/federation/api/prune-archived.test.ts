// `prune --archived`: what goes is in the archive as it is.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { freshFolder, TestSite } from "./sites.ts";

test("a run that was retried after it was archived stays until its new end is archived", async () => {
  let isBroken = true;
  const flaky = workflow("flaky", async (ctx) =>
    ctx.run("work", {}, () => {
      if (isBroken) throw new Error("broken");
      return "done";
    }),
  );
  const archive = join(freshFolder(), "archive");
  mkdirSync(archive);
  const edge = new TestSite("edge");
  const site = await edge.open({ store: edge.store, archive });
  await site.setOn(true);
  await using engine = await createEngine({ store: edge.store, definitions: [flaky], logger: false });
  const run = await engine.start(flaky, undefined, { id: "f-1" });
  await expect(run.result()).rejects.toThrow("broken");
  expect(await site.archive()).toMatchObject({ runs: 1 });

  // Nothing notes the second end: recording is off.
  await site.setOn(false);
  isBroken = false;
  await run.retry();
  expect(await run.result()).toBe("done");
  expect(await site.pruneArchived({ olderThan: 0 })).toEqual({ runs: 0 });

  await site.setOn(true);
  expect(await site.archive()).toMatchObject({ runs: 1 });
  expect(await site.pruneArchived({ olderThan: 0 })).toEqual({ runs: 1 });
});
