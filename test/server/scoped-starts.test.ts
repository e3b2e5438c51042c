// A caller with scopes that starts or forks a run reaches no run outside of them.

import { createEngine, signal, workflow } from "reprise";
import { expect, test } from "vitest";
import { openApi } from "./api.ts";

const box = workflow("box", { ports: { note: signal<string>() } }, async (ctx) => ctx.receive("note"));
const other = workflow("other", async () => "done");

test("a start or fork with the id of a run outside of the scope is refused, and sends that run no signal", async () => {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [box, other], logger: false });
  await using api = openApi(engine);
  const theirs = await engine.start(box, undefined, { id: "us-1", tags: ["us"] });
  const eu = api.as({ name: "eu", role: "operator", tags: ["eu"] });
  const body = { id: "us-1", tags: ["eu"], signals: { note: "from eu" } };
  const { id, ...unnamed } = body;
  const refused = [
    await eu.post("/v1/definitions/box/runs", body),
    await eu.post("/v1/definitions/box/runs", unnamed, { "idempotency-key": id }),
    await api.as({ name: "others", definitions: ["other"] }).post("/v1/definitions/other/runs", { id }),
  ];
  for (const answer of refused) {
    expect(answer).toMatchObject({ status: 409, body: { code: "START_CONFLICT" } });
    expect(answer.body.detail).toBe("The id us-1 is taken. Use another one.");
  }
  const own = await engine.start(other, undefined, { id: "eu-1", tags: ["eu"] });
  await own.result();
  const fork = await eu.post("/v1/runs/eu-1/fork", { id: "us-1", tags: ["eu"] });
  expect(fork).toMatchObject({ status: 409, body: { detail: "The id us-1 is taken. Use another one." } });
  await theirs.signal("note", "from us");
  expect(await theirs.result()).toBe("from us");
});

test("a caller with tags joins no run by a key that other callers use as well", async () => {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [box, other], logger: false });
  await using api = openApi(engine);
  const theirs = await engine.start(box, undefined, { tags: ["us"], singleton: "one" });
  const later = await engine.start(box, undefined, { tags: ["us"], debounce: { key: "later", by: "1 hour" } });
  const eu = api.as({ name: "eu", role: "operator", tags: ["eu"] });
  for (const key of [{ singleton: "one" }, { debounce: { key: "later", by: "1 ms" } }])
    expect(
      await eu.post("/v1/definitions/box/runs", { tags: ["eu"], signals: { note: "from eu" }, ...key }),
    ).toMatchObject({ status: 403, body: { code: "ROLE_REQUIRED" } });
  expect((await later.info()).tags).toEqual(["us"]);
  await theirs.signal("note", "from us");
  expect(await theirs.result()).toBe("from us");
});
