// Runs whose journal was damaged in the file of the store: the API says so, and none of its reads is an error of the server.

import { DatabaseSync } from "node:sqlite";
import { createEngine, workflow } from "reprise";
import { expect, test } from "vitest";
import { createFolder } from "../engine/world.ts";
import { openApi } from "./api.ts";

const sum = workflow("sum", async (ctx, to: number) => {
  let total = 0;
  for (let n = 1; n <= to; n++) total += await ctx.run("add", () => n);
  return total;
});

const DAMAGES = {
  "another value": "update journal set data = cast(replace(cast(data as text), '2', '9') as blob) where seq = 3",
  "bytes that are no value": "update journal set data = x'00ff7b' where seq = 3",
  "a missing entry": "delete from journal where seq = 3",
  "a missing end": "delete from journal where seq >= 4",
  "another type": "update journal set type = 'Unheard' where seq = 3",
} as const;

test.each(Object.entries(DAMAGES))("verify of a journal with %s is 200, and says damaged", async (_what, sql) => {
  using folder = createFolder();
  const path = folder.file("damaged.db");
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [sum], logger: false });
  await (await engine.start(sum, 3, { id: "sum-3" })).result();
  const failures: unknown[] = [];
  const logger = {
    info: () => undefined,
    warn: () => undefined,
    error: (text: string) => void failures.push(text),
  };
  await using api = openApi(engine, { logger });
  expect((await api.post("/v1/runs/sum-3/verify")).body).toMatchObject({ status: "same", chain: { intact: true } });
  const db = new DatabaseSync(path);
  expect(db.prepare(sql).run().changes).toBeGreaterThan(0);
  db.close();
  for (const act of ["verify", "replay"]) {
    const { status, body } = await api.post(`/v1/runs/sum-3/${act}`);
    expect([status, body.status, body.chain?.intact], JSON.stringify([body, failures])).toEqual([
      200,
      "damaged",
      false,
    ]);
    expect(body.differences[0].where).toMatch(/^entry [345]$/);
  }
  for (const read of ["", "/journal", "/timeline", "/attempts", "/checkpoints", "/journal.jsonl", "/result"]) {
    const answer = await api.get(`/v1/runs/sum-3${read}`);
    expect(answer.status, `${read}: ${JSON.stringify([answer.body, failures])}`).not.toBe(500);
  }
  expect(failures).toEqual([]);
});
