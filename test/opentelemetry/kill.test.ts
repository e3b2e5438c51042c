import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createFolder } from "../engine/world.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";

const PROCESS = fileURLToPath(new URL("traced-process.ts", import.meta.url));

function run(...args: readonly string[]): ChildProcess {
  return spawn(process.execPath, ["--conditions=reprise-source", PROCESS, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** The spans that the killed process and its successor exported, by name and execution. */
async function spansAround(store: string, folder: ReturnType<typeof createFolder>): Promise<readonly string[]> {
  const file = folder.file("spans.jsonl");
  const killed = run(store, file, "start");
  await once(killed.stdout!, "data");
  killed.kill("SIGKILL");
  await once(killed, "exit");
  const next = run(store, file);
  await once(next, "exit");
  return readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { name: string; "reprise.execution"?: number })
    .filter(({ name }) => !name.startsWith("invoke_workflow"))
    .map((span) => `${span.name} ${span["reprise.execution"] ?? ""}`.trim())
    .toSorted();
}

const EXPECTED = [
  "process bill 1",
  "run first 1",
  "run hang 2",
  "run last 1",
  "send bill",
  "start order",
  "task bill 1",
];

describe("after a SIGKILL of the worker", () => {
  test("no span is exported twice, and none of the step that was lost", async () => {
    using folder = createFolder();
    expect(await spansAround(`sqlite:${folder.file("shop.db")}`, folder)).toEqual(EXPECTED);
  });
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `after a SIGKILL of the worker on ${kind}`, () => {
    test("no span is exported twice, and none of the step that was lost", async () => {
      using folder = createFolder();
      await using database = await freshDatabase(kind);
      expect(await spansAround(database.url, folder)).toEqual(EXPECTED);
    });
  });
