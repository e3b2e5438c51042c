// Runs of an edge go to a hub through one carrier, and on to an auditor through another.

import { expect, test } from "vitest";
import { double, folderCarrier, Site } from "./site.ts";

test("runs of an edge reach a hub, and through it an auditor, as the bytes that the edge wrote", async () => {
  const edge = new Site("edge", { rules: [{ to: ["hub"], definitions: ["math.*"], payloads: "full" }] });
  const hub = new Site("hub", { rules: [{ to: ["auditor"], origins: ["edge/*"], payloads: "full" }] }).admit(edge);
  const auditor = new Site("auditor").admit(edge, hub);
  const [up, down] = [await folderCarrier(), await folderCarrier()];

  await edge.run(double, { "d-1": 4, "d-2": 5 });
  await edge.sync(up, "hub");
  await hub.pull(up, { journals: "all" });
  await hub.push(down, "auditor");
  const pulled = await auditor.pull(down, { journals: "all" });

  expect(pulled.find(({ origin }) => origin === edge.origin)).toMatchObject({
    status: "pulled",
    records: 4,
    journals: 2,
  });
  expect(auditor.home.stateHash()).toBe(edge.home.stateHash());
  expect(auditor.home.checkpoint(edge.origin)?.note).toBe(edge.home.checkpoint(edge.origin)?.note);
  const found = auditor.home.findRuns({ origin: edge.origin });
  expect(found.map(({ run, status }) => [run, status])).toEqual([
    ["d-1", "completed"],
    ["d-2", "completed"],
  ]);
  for (const { statement, record } of found) {
    expect(auditor.home.content(record)?.bytes).toEqual(edge.home.content(record)?.bytes);
    expect(auditor.home.content(statement!)?.bytes).toEqual(edge.home.content(statement!)?.bytes);
  }
});
