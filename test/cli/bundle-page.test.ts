import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { runInThisContext } from "node:vm";
import { workflow } from "reprise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBundle } from "../../src/cli/open-bundle.ts";
import { CHECK_SCRIPT } from "../../src/cli/page-check.ts";
import { command, isInstalled, TemporaryFolder } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

interface PageReport {
  readonly checks: readonly { readonly name: string; readonly state: "good" | "bad" | "none" }[];
}
// The script of the page, as a browser runs it.
const checkLines = runInThisContext(`(() => { ${CHECK_SCRIPT}; return checkLines; })()`) as (
  text: string,
  vkey: string,
) => Promise<readonly PageReport[]>;

const HOSTILE = `</script><img src=x onerror="document.body.dataset.verdict='hacked'"> <!-- \u2028\u2029\0 \\u003c \\\\u003c 4711`;
const echo = workflow("echo", async (ctx, text: string) => ctx.run("echo", { text }, () => text));
let runs: StoreWithRuns;
const folder = new TemporaryFolder();
beforeAll(async () => {
  runs = await new StoreWithRuns([echo]).start({
    id: "<b>echo</b>",
    what: echo,
    input: HOSTILE,
    tags: ["</script>"],
    until: "completed",
  });
});
afterAll(() => {
  runs[Symbol.dispose]();
  folder[Symbol.dispose]();
});

async function pageOf(
  ...options: readonly string[]
): Promise<{ readonly page: string; readonly lines: string; readonly vkey: string }> {
  const bundle = async (...more: readonly string[]): Promise<string> =>
    (
      await command([
        "bundle",
        "<b>echo</b>",
        ...options,
        ...more,
        "-o",
        "-",
        "--store",
        runs.url,
        "--home",
        folder.file("home"),
      ])
    ).stdout;
  const { stdout } = await command(["key", "--json", "--home", folder.file("home")]);
  return { page: await bundle("--html"), lines: await bundle(), vkey: (JSON.parse(stdout) as { vkey: string }).vkey };
}

/** The text of the element that holds the lines. */
function embedded(page: string): string {
  const [, text = ""] = /<script type="text\/plain" id="bundle">([^<]*)<\/script>/.exec(page) ?? [];
  return text;
}

const statesOf = (reports: readonly PageReport[]): readonly string[] => [
  ...new Set(reports.flatMap(({ checks }) => checks.map(({ state }) => state))),
];

test.each(["--full", "--hash-only", "--blind"])(
  "the page of a bundle (%s) checks its lines and its signature",
  async (form) => {
    const { page, vkey } = await pageOf(form);
    const reports = await checkLines(embedded(page), vkey);
    expect(reports).toHaveLength(1);
    expect(statesOf(reports)).toEqual(["good"]);
  },
);

test("a page with a changed byte, another key or no signature says so", async () => {
  const { page, vkey } = await pageOf();
  const text = embedded(page);
  const states = async (changed: string): Promise<readonly string[]> =>
    statesOf(
      await checkLines(changed, vkey).catch((): PageReport[] => [{ checks: [{ name: "lines", state: "bad" }] }]),
    );
  const accepted: string[] = [];
  for (let at = 1; at < text.length; at += 5) {
    const code = text.charCodeAt(at);
    if (text[at] === "\n" || code > 126) continue;
    const changed = `${text.slice(0, at)}${String.fromCharCode(code === 126 ? 125 : code + 1)}${text.slice(at + 1)}`;
    if ((await states(changed)).join() === "good") accepted.push(changed.slice(at - 10, at + 10));
  }
  expect(accepted).toEqual([]);
  expect(statesOf(await checkLines(text, ""))).toEqual(["good", "none"]);
  const unsigned = await pageOf("--unsigned");
  expect(unsigned.page).not.toContain('name="vkey"');
  expect(statesOf(await checkLines(embedded(unsigned.page), ""))).toEqual(["good", "none"]);
});

test("the lines are read back from the page byte for byte", async () => {
  const { page, lines } = await pageOf();
  writeFileSync(folder.file("page.html"), page);
  await using opened = await openBundle(folder.file("page.html"));
  expect(Buffer.concat(await Array.fromAsync(opened.read(0))).toString()).toBe(lines);
  expect(lines).toContain("</script>");
});

test("no payload ends the element of the lines, and the page allows nothing but its own script and style", async () => {
  const { page } = await pageOf();
  expect(page.match(/<script/g)).toHaveLength(2);
  expect(page.match(/<\/script>/g)).toHaveLength(2);
  expect(page).not.toContain("<img");
  const [, policy] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page) ?? [];
  expect(policy).toMatch(
    /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'$/,
  );
  expect(page.replace(embedded(page), "")).not.toMatch(/(?:src|href)=|@import|url\(/);
});

test.runIf(isInstalled("chromium"))("a browser shows the run and the verdict, and runs no payload", async () => {
  const { page } = await pageOf();
  const dom = (html: string): string => {
    writeFileSync(folder.file("shown.html"), html);
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"];
    return execFileSync("chromium", [...flags, `file://${folder.file("shown.html")}`], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
  };
  const shown = dom(page);
  expect(shown).toContain('data-verdict="good"');
  expect(shown).toContain("<h2>&lt;b&gt;echo&lt;/b&gt;</h2>");
  expect(shown).toContain("OperationCompleted Operation(0)");
  expect(dom(page.replace("4711", "4712"))).toContain('data-verdict="bad"');
  expect(readFileSync(folder.file("shown.html"), "utf8")).toContain("4712");
});
