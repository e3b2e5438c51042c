import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createEngine, graph, last, START, workflow } from "reprise";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBundle } from "../../src/cli/open-bundle.ts";
import { CHAIN_START, chainAfter } from "../../src/kernel/index.ts";
import { artifactKey, mediaType } from "../../src/base/index.ts";
import { kid, runsOfAllKinds } from "../receipts/bundled.ts";
import { secondCheck } from "../receipts/second-checker.ts";
import { cli, command, finished, startCli, TemporaryFolder } from "./cli-process.ts";
import { codec } from "./codec.ts";
import { many } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const CODEC = new URL("codec.ts", import.meta.url).pathname;
let runs: StoreWithRuns;
beforeAll(async () => {
  runs = await runsOfAllKinds();
});
afterAll(() => runs[Symbol.dispose]());

/** A folder with a signing key, in which commands run. */
class Place extends TemporaryFolder {
  async bundle(...args: readonly string[]): Promise<ReturnType<typeof command>> {
    return command(["bundle", ...args, "--store", runs.url, "--home", this.file("home")], { cwd: this.path });
  }

  read(name: string): string {
    return readFileSync(this.file(name), "utf8");
  }
}

async function verdicts(place: TemporaryFolder, bytes: Uint8Array): Promise<readonly string[]> {
  const { stdout } = await command(["key", "--json", "--home", place.file("home")]);
  return secondCheck(bytes, [(JSON.parse(stdout) as { vkey: string }).vkey]);
}

function sectionsOf(text: string): readonly string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith('{"form"'))
    .map((line) => JSON.parse(line).run)
    .map(({ id, generation }) => `${id}#${generation}`);
}

test("bundle writes a private, signed file, says what it contains, and gives the same bytes again", async () => {
  using place = new Place();
  const first = await place.bundle("sum", "-o", "one.jsonl");
  expect(first).toMatchObject({ code: 0, stdout: /^bundled {2}1 run, \d+ entries in one\.jsonl/ });
  expect(first.stdout).toContain("contains the payloads as recorded: inputs, results and the secrets in them");
  expect(first.stderr).toMatch(/^created the signing key [\w.-]+\/[0-9a-f]{16} in .*home\/key/);
  const second = await place.bundle("sum", "-o", "two.jsonl", "--json");
  expect(second.stderr).toBe("");
  const bytes = readFileSync(place.file("two.jsonl"));
  expect(JSON.parse(second.stdout)).toMatchObject({
    file: place.file("two.jsonl"),
    form: "full",
    payloads: true,
    bytes: bytes.length,
    digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
    runs: [{ id: "sum", generation: 0, status: "completed", claim: /^[0-9a-f]{64}$/ }],
  });
  expect(place.read("one.jsonl")).toBe(bytes.toString());
  expect(statSync(place.file("two.jsonl")).mode & 0o777).toBe(0o600);
  expect(readdirSync(place.path).toSorted()).toEqual(["home", "one.jsonl", "two.jsonl"]);
  expect(await verdicts(place, bytes)).toEqual(["fine"]);
});

test("a file that exists is not replaced, and a missing run leaves no file", async () => {
  using place = new Place();
  writeFileSync(place.file("mine.txt"), "mine");
  const refused = await place.bundle("sum", "-o", "mine.txt");
  expect(refused).toMatchObject({ code: 2, stderr: /mine\.txt cannot be written: it already exists/ });
  expect(await place.bundle("nothing", "-o", "none.jsonl")).toMatchObject({ code: 2, stderr: /RUN_NOT_FOUND/ });
  expect(place.read("mine.txt")).toBe("mine");
  expect(readdirSync(place.path)).toEqual(["mine.txt"]);
});

test("standard output gets the bundle, and standard error what it contains", async () => {
  using place = new Place();
  await place.bundle("kid", "-o", "kid.jsonl");
  const { stdout, stderr } = await place.bundle("kid", "-o", "-", "--json");
  expect(stdout).toBe(place.read("kid.jsonl"));
  expect(JSON.parse(stderr)).toMatchObject({ file: null, entries: 3 });
});

test("all generations of a run are bundled, oldest first, or the one that is asked for", async () => {
  using place = new Place();
  await place.bundle("pages", "kid", "-o", "all.jsonl");
  expect(sectionsOf(place.read("all.jsonl"))).toEqual(["pages#0", "pages#1", "kid#0"]);
  await place.bundle("pages", "--generation", "0", "-o", "first.jsonl");
  expect(sectionsOf(place.read("first.jsonl"))).toEqual(["pages#0"]);
  expect(await place.bundle("pages", "kid", "--generation", "0", "-o", "x")).toMatchObject({
    code: 2,
    stderr: /USAGE/,
  });
});

test("a live and a stopped run are bundled as open, with the evidence", async () => {
  using place = new Place();
  await place.bundle("pages", "stopped", "-o", "open.jsonl");
  const claims = place.read("open.jsonl").match(/\\"end\\":\\"\w+\\",\\"(?:input|kind)/g);
  expect(claims?.map((found) => /:\\"(\w+)/.exec(found)?.[1])).toEqual(["continued", "open", "open"]);
  expect(place.read("open.jsonl")).toMatch(/\n\{"evidence":".*UNKNOWN_TASK/);
  expect(await verdicts(place, readFileSync(place.file("open.jsonl")))).toEqual(["fine", "fine", "fine"]);
});

test("a family is the descendants of a run, and their parents and fork origins, in one order", async () => {
  const inner = workflow("inner", async (ctx) => ctx.child(kid, 2));
  const outer = workflow("outer", async (ctx) => [await ctx.child(inner), await ctx.child(kid, 1, { id: "sibling" })]);
  const steps = graph("steps", { state: { n: last(0) } })
    .node("a", async () => ({ n: 1 }))
    .edge(START, "a");
  using family = new StoreWithRuns([outer, inner, kid, steps]);
  await family.start({ id: "top", what: outer, until: "completed" }, { id: "origin", what: steps, until: "completed" });
  {
    await using engine = await createEngine({ store: family.url, definitions: [outer, inner, kid, steps] });
    await (await engine.get(steps, "origin").fork({ step: 0, id: "fork" })).result();
  }
  using place = new TemporaryFolder();
  const bundled = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await command(["bundle", ...args, "-o", "-", "--store", family.url, "--home", place.path]);
    return sectionsOf(stdout).map((section) => section.replace(/ChildWorkflow\(\d\)|[/:].*(?=#)/, "…"));
  };
  const whole = await bundled("top", "--family");
  expect(whole[0]).toBe("top#0");
  expect(whole).toHaveLength(4);
  const { stdout } = await command(["list", "--json", "--store", family.url]);
  const middle = stdout
    .split("\n")
    .flatMap((line) => (line.includes('"definition":"inner"') ? [JSON.parse(line).id as string] : []));
  // Its child and its parent, but not its sibling.
  expect(await bundled(middle[0]!, "--family")).toHaveLength(3);
  expect(await bundled(middle[0]!)).toHaveLength(1);
  expect(await bundled("fork", "--family")).toEqual(["origin#0", "fork#0"]);
  expect(await bundled("top", "--family")).toEqual(whole);
});

/** Digests that somebody can compute from a guessed input without a secret. */
function guesses(input: number): readonly string[] {
  const text = String(input);
  const sha = (value: string): string => createHash("sha256").update(value).digest("hex");
  const started = `{"definition":"kid","flags":[1],"input":${text},"version":1}`;
  const step = `{"index":0,"input":{"n":${text}},"operationName":"double","result":${input * 2}}`;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", started);
  const values = [text, `{"n":${text}}`, String(input * 2), started, step, `{"output":${input * 2}}`];
  const ends = chainAfter(
    chainAfter(chain, "OperationCompleted", "Operation(0)", step),
    "RunCompleted",
    "",
    values[5]!,
  );
  return [...values.map(sha), ...values.map((value) => artifactKey(mediaType("value"), value)), chain, ends];
}

/** The inputs of four digits that a file confirms. */
function guessed(file: string): readonly number[] {
  const statement = (line: string): string => {
    const { payload } = JSON.parse(line) as { payload?: string };
    return payload === undefined ? line : Buffer.from(payload, "base64").toString();
  };
  const text = file.trimEnd().split("\n").map(statement).join("\n");
  const digests = new Set(text.match(/[0-9a-f]{64}/g));
  return Array.from({ length: 10_000 }, (_, input) => input).filter((input) =>
    guesses(input).some((digest) => digests.has(digest)),
  );
}

test("an input of four digits cannot be guessed from a blind bundle; from one with plain digests it can", async () => {
  using place = new Place();
  using small = await new StoreWithRuns([kid]).start({ id: "pin", what: kid, input: 4711, until: "completed" });
  for (const [form, expected] of [
    ["--hash-only", [4711, 9422]],
    ["--blind", []],
  ] as const) {
    const file = `bundle${form}`;
    await command(["bundle", "pin", form, "-o", place.file(file), "--store", small.url, "--home", place.file("home")]);
    expect(guessed(place.read(file))).toEqual(expected);
    expect(await verdicts(place, readFileSync(place.file(file)))).toEqual(["fine"]);
  }
});

test("a store with a codec is always blind outside, unless the operator asks for the payloads", async () => {
  using place = new Place();
  const store = `sqlite:${place.file("secret.db")}`;
  {
    await using engine = await createEngine({ store, definitions: [kid], codec });
    await (await engine.start(kid, 4711, { id: "pin" })).result();
  }
  const bundle = (...args: readonly string[]): ReturnType<typeof cli> =>
    cli(["bundle", "pin", ...args, "--store", store, "--home", place.file("home")]);
  expect(await bundle("-o", place.file("locked"))).toMatchObject({ code: 3, stderr: /PAYLOAD_KEY_MISSING.*--codec/ });
  const blind = await bundle("-o", place.file("blind"), "--codec", CODEC, "--json");
  expect(JSON.parse(blind.stdout)).toMatchObject({ form: "blind", payloads: false });
  expect(guessed(place.read("blind"))).toEqual([]);
  expect(place.read("blind")).not.toMatch(/[^0-9a-f](?:4711|9422)[^0-9a-f]/);
  expect(await verdicts(place, readFileSync(place.file("blind")))).toEqual(["fine"]);
  const hashes = await bundle("-o", place.file("hashes"), "--codec", CODEC, "--hash-only");
  expect(hashes).toMatchObject({ code: 2, stderr: /plain digests of short values can be guessed\. Use --blind/ });
  const full = await bundle("-o", place.file("full"), "--codec", CODEC, "--full");
  expect(full).toMatchObject({ code: 0, stdout: /contains the payloads as recorded/ });
  expect(place.read("full")).toContain("4711");
  expect(
    readdirSync(place.path)
      .filter((name) => !name.startsWith("secret"))
      .toSorted(),
  ).toEqual(["blind", "full", "home"]);
});

test("a bundle for an age recipient is opened with its identity only, and a changed byte is found", async () => {
  using place = new Place();
  const [identity, other] = [await generateIdentity(), await generateIdentity()];
  const recipient = await identityToRecipient(identity);
  writeFileSync(place.file("identity"), `# mine\n${identity}\n`);
  writeFileSync(place.file("other"), `${other}\n`);
  await place.bundle("sum", "-o", "plain.jsonl");
  const { stdout } = await place.bundle("sum", "-o", "sum.age", "--to", recipient);
  expect(stdout).toContain(`readable only by ${recipient}`);
  const bytes = readFileSync(place.file("sum.age"));
  expect(bytes.includes("RunStarted")).toBe(false);
  const lines = async (file: string, key?: string): Promise<string> => {
    await using opened = await openBundle(place.file(file), key === undefined ? {} : { identity: place.file(key) });
    return Buffer.concat(await Array.fromAsync(opened.read(0))).toString();
  };
  expect(await lines("sum.age", "identity")).toBe(place.read("plain.jsonl"));
  await expect(lines("sum.age")).rejects.toMatchObject({ code: "USAGE", message: /--identity/ });
  await expect(lines("sum.age", "other")).rejects.toMatchObject({ code: "BAD_OPTIONS", message: /no identity in/ });
  bytes[bytes.length - 40]! ^= 1;
  writeFileSync(place.file("changed.age"), bytes);
  await expect(lines("changed.age", "identity")).rejects.toMatchObject({ code: "BUNDLE_DAMAGED" });
  const wrong = await place.bundle("sum", "-o", "wrong.age", "--to", "age1nobody");
  expect(wrong).toMatchObject({ code: 2, stderr: /is not an age recipient/ });
});

test("Ctrl-C leaves no file, and a killed process none under the name of the bundle", async () => {
  using place = new Place();
  using large = await new StoreWithRuns([many]).start({ id: "many", what: many, input: 8_000, until: "completed" });
  const started = async (signal: "SIGINT" | "SIGKILL", name: string): Promise<number | null> => {
    const child = startCli([
      "bundle",
      "many",
      "-o",
      place.file(name),
      "--store",
      large.url,
      "--home",
      place.file("home"),
    ]);
    const ended = finished(child);
    while (child.exitCode === null && !readdirSync(place.path).some((file) => file.startsWith(`.${name}`)))
      await new Promise((resolve) => setImmediate(resolve));
    child.kill(signal);
    return (await ended).code;
  };
  expect(await started("SIGINT", "interrupted")).toBe(130);
  expect(readdirSync(place.path)).toEqual(["home"]);
  expect(await started("SIGKILL", "killed")).toBe(null);
  expect(readdirSync(place.path)).toEqual([expect.stringMatching(/^\.killed\.[0-9a-f]{12}\.tmp$/), "home"]);
});
