// T-07: a push or a pull that stops anywhere.

import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHome } from "../../../src/federation/home/home.ts";
import { pullFrom } from "../../../src/federation/sync/pull.ts";
import { interrupted, Killed } from "./interrupted-carrier.ts";
import { double, filesIn, folderCarrier, freshFolder, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

test("a push that is killed before any operation is finished by the next one, and leaves the same files", async () => {
  const edge = new Site("edge", { rules: RULES });
  await edge.run(double, { "d-1": 1, "d-2": 2 });
  await edge.take();
  const whole = await folderCarrier();
  const counted = interrupted(whole);
  await edge.push(counted, "hub");
  const expected = filesIn(whole.folder);
  for (let stop = 0; stop < counted.operations.length; stop += 1) {
    const carrier = await folderCarrier();
    await expect(edge.push(interrupted(carrier, stop), "hub", { state: undefined })).rejects.toBeInstanceOf(Killed);
    // push.U1: a checkpoint is there only with everything under it.
    expect(carrier.folder === "" || !filesIn(carrier.folder).has(`/${edge.origin}/checkpoint`), String(stop)).toBe(
      true,
    );
    const again = interrupted(carrier);
    const [outcome] = await edge.push(again, "hub", { state: undefined });
    expect(outcome?.status).toBe("pushed");
    expect(filesIn(carrier.folder)).toEqual(expected);
  }
});

test("a pull that is killed before any operation is finished by the next one, without a gap and nothing twice", async () => {
  const edge = new Site("edge", { rules: RULES });
  const carrier = await folderCarrier();
  await edge.run(double, { "d-1": 1 });
  await edge.sync(carrier, "hub");
  const hub = new Site("hub").admit(edge);
  await hub.pull(carrier, { journals: "all" });
  await edge.run(double, { "d-2": 2, "d-3": 3 });
  await edge.sync(carrier, "hub");
  hub.home.close();
  const copyOfHome = (): ReturnType<typeof openHome> => {
    const folder = join(freshFolder(), "home");
    cpSync(hub.home.dir, folder, { recursive: true });
    return openHome(folder);
  };
  const whole = copyOfHome();
  const counted = interrupted(carrier);
  expect(await pullFrom(whole, counted, { journals: "all" })).toMatchObject([
    { status: "pulled", records: 4, journals: 2 },
  ]);
  const expected = whole.stateHash();
  expect(expected).toBe(edge.home.stateHash());
  whole.close();
  for (let stop = 0; stop < counted.operations.length; stop += 1) {
    using home = copyOfHome();
    await expect(pullFrom(home, interrupted(carrier, stop), { journals: "all" })).rejects.toBeInstanceOf(Killed);
    const before = home.origin(edge.origin)!.size;
    const [outcome] = await pullFrom(home, interrupted(carrier), { journals: "all" });
    expect(outcome?.records).toBe(6 - before);
    expect(home.stateHash()).toBe(expected);
    expect(home.missing()).toEqual([]);
    const again = interrupted(carrier);
    expect(await pullFrom(home, again, { journals: "all" })).toMatchObject([
      { status: "unchanged", records: 0, contents: 0 },
    ]);
    expect(again.operations).toEqual([`get ${edge.origin}/checkpoint`]);
  }
});
