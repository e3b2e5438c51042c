// A thousand open promises, clicked by four processes at once.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { createEngine } from "reprise";
import { collect, createFolder } from "../engine/world.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import type { Click, Work } from "./promise-clicker.ts";
import { approvals } from "./promise-definitions.ts";

const RUNS = 4;
const EACH = 250;
const PEOPLE = ["person 0", "person 1", "person 2", "person 3"];

interface Said {
  readonly listed?: number;
  readonly clicks?: readonly Click[];
  readonly error?: string;
}

async function said(child: ChildProcess): Promise<Said> {
  const [message] = (await once(child, "message")) as [Said];
  if (message.error !== undefined) throw new Error(message.error);
  return message;
}

async function startPerson(store: string, person: string): Promise<ChildProcess> {
  const child = fork(new URL("promise-clicker.ts", import.meta.url), { execArgv: ["--conditions=reprise-source"] });
  child.send({ store, person } satisfies Work);
  expect((await said(child)).listed).toBe(RUNS * EACH);
  return child;
}

async function clickFromEveryProcess(store: string): Promise<readonly Click[]> {
  const people = await Promise.all(PEOPLE.map((person) => startPerson(store, person)));
  try {
    const all = people.map(said);
    for (const child of people) child.send("go");
    return (await Promise.all(all)).flatMap(({ clicks }) => clicks!);
  } finally {
    for (const child of people) child.kill("SIGKILL");
  }
}

async function haveOneAnswerEach(store: string): Promise<void> {
  await using engine = await createEngine({ store, definitions: [approvals], logger: false });
  const ids = Array.from({ length: RUNS }, (_, n) => `ticket-${n}`);
  const runs = await Promise.all(ids.map((id) => engine.start(approvals, EACH, { id })));
  await expect.poll(async () => (await collect(engine.promises())).length).toBe(RUNS * EACH);
  const clicks = await clickFromEveryProcess(store);
  expect(clicks).toHaveLength(RUNS * EACH * PEOPLE.length * 2);

  const winners = Map.groupBy(clicks, ({ promise }) => promise);
  for (const run of runs) {
    // What the code got is what every click was answered, and the journal has one settlement per promise.
    await run.resolve("close", undefined);
    const answers = await run.result({ timeout: "60 s" });
    const reported = answers.map((_by, n) => new Set(winners.get(`${run.id} call-${n}`)?.map(({ winner }) => winner)));
    expect(reported).toEqual(answers.map((by) => new Set([by])));
    const settled = (await collect(run.journal())).filter(({ type }) => type === "PromiseResolved");
    const keys = settled.map(({ data }) => (data as { key?: string }).key).filter((key) => key !== undefined);
    expect(keys).toHaveLength(EACH);
    expect(new Set(keys).size).toBe(EACH);
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
  // Otherwise the clicks would not have met.
  expect(new Set(clicks.map(({ winner }) => winner)).size).toBeGreaterThan(1);
  expect(await collect(engine.promises())).toEqual([]);
}

const NAME = "1,000 open promises, clicked twice by each of four processes, have one answer each";

describe("on SQLite", () => {
  test(NAME, { timeout: 120_000 }, async () => {
    using folder = createFolder();
    await haveOneAnswerEach(`sqlite:${folder.file("approvals.db")}`);
  });
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on ${kind}`, () => {
    test(NAME, { timeout: 120_000 }, async () => {
      await using database = await freshDatabase(kind);
      await haveOneAnswerEach(database.url);
    });
  });
