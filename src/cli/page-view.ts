// Page view: how a page shows the runs of a bundle. Payloads become text nodes, never HTML.

/** Runs after the script of page-check.ts. Sets `data-verdict` of the body: good, unsigned or bad. */
export const VIEW_SCRIPT = String.raw`
const PAGE = 500;
function element(name, fields = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(fields)) made.setAttribute(key, value);
  made.append(...children.map((child) => (typeof child === "string" ? document.createTextNode(child) : child)));
  return made;
}
const timeOf = (at) => new Date(at).toISOString().replace("T", " ").replace("Z", " UTC");
function pretty(data) {
  try {
    return JSON.stringify(JSON.parse(data), undefined, 2);
  } catch {
    return data;
  }
}
function facts(pairs) {
  const list = element("dl");
  for (const [name, value] of pairs)
    if (value !== undefined && value !== "") list.append(element("dt", {}, name), element("dd", {}, String(value)));
  return list;
}
function entryRow(entry, start) {
  const isFull = Array.isArray(entry);
  const [seq, type, command, at, tookMs, data] = isFull
    ? entry
    : [entry.seq, entry.type, entry.command, entry.at, entry.tookMs ?? null, undefined];
  const shown = isFull
    ? element("details", {}, element("summary", {}, data.length > 80 ? data.slice(0, 80) + "…" : data), element("pre", {}, pretty(data)))
    : element("code", {}, (entry.data ?? entry.blind) + ", " + entry.size + " bytes");
  return element(
    "li",
    {},
    element("span", { class: "seq" }, String(seq)),
    element("span", { class: "time", title: timeOf(at) }, "+" + ((at - start) / 1000).toFixed(3) + " s"),
    element("span", { class: "type" }, type, command === "" ? "" : " " + command, tookMs === null ? "" : " · " + tookMs + " ms"),
    element("div", { class: "data" }, shown),
  );
}
function timeline(entries) {
  const start = entries.length === 0 ? 0 : Array.isArray(entries[0]) ? entries[0][3] : entries[0].at;
  const list = element("ol", {});
  const more = element("button", { type: "button" });
  let shown = 0;
  const grow = () => {
    for (const entry of entries.slice(shown, shown + PAGE)) list.append(entryRow(entry, start));
    shown = Math.min(shown + PAGE, entries.length);
    more.textContent = "Show more: " + (entries.length - shown) + " left";
    more.hidden = shown === entries.length;
  };
  more.addEventListener("click", grow);
  grow();
  return [list, more];
}
const FORMS = { full: "with payloads", "hash-only": "digests of payloads", blind: "blind digests of payloads" };
const MARKS = { good: "✓", bad: "✗", none: "–" };
function section(report, vkey) {
  const { header, said, claim, entries, checks } = report;
  const { run } = header;
  const place = element("section", {});
  place.append(
    element("h2", {}, run.id, run.generation > 0 ? " · generation " + run.generation : ""),
    facts([
      ["definition", run.definition + " · " + run.kind + " · version " + run.version],
      ["status", run.status],
      ["created", timeOf(run.createdAt)],
      ["ended", run.endedAt === undefined ? undefined : timeOf(run.endedAt)],
      ["entries", entries.length + ", " + FORMS[header.form]],
      ["tags", run.tags.join(", ")],
      ["parent", run.parent && run.parent.run + " · " + run.parent.command],
    ]),
    element("h3", {}, "Checks"),
  );
  const list = element("ul", { class: "checks" });
  for (const { name, state, text } of checks)
    list.append(element("li", { class: state }, MARKS[state] + " " + name + (text === "" ? "" : ": " + text)));
  place.append(
    list,
    element("h3", {}, "Statement"),
    facts([
      ["signed by", said.origin === "" ? "no key" : said.origin],
      ["vkey", vkey],
      ["engine", said.engine],
      ["runtimes", said.runtimes.map((one) => Object.entries(one).map((pair) => pair.join(" ")).join(", ")).join("; ")],
      ["chain", said.chain],
      ["journal root", said.journal.root],
    ]),
    element("h3", {}, "Claim"),
    facts([["key", said.claim], ["end", claim.end], ["steps", claim.steps], ["root", claim.root], ["input", claim.input], ["output", claim.output], ["error", claim.error]]),
    element("h3", {}, "Journal"),
    ...timeline(entries),
  );
  return place;
}
async function showPage() {
  const main = document.querySelector("main");
  const verdict = document.getElementById("verdict");
  const vkey = document.querySelector("meta[name=vkey]")?.content ?? "";
  const tell = (state, text) => {
    verdict.textContent = text;
    document.body.dataset.verdict = state;
  };
  let reports;
  try {
    if (!globalThis.crypto?.subtle) throw new Error("this browser offers no cryptography to this page");
    reports = await checkLines(document.getElementById("bundle").textContent, vkey);
  } catch (error) {
    return tell("bad", "These lines cannot be checked: " + error.message + ". Run: reprise verify <this file>");
  }
  document.title = reports.map(({ header }) => header.run.id).join(", ") + " · Reprise";
  const states = reports.flatMap(({ checks }) => checks.map(({ state }) => state));
  if (reports.length === 0 || states.includes("bad")) tell("bad", "Damaged: the lines do not agree with the statement.");
  else if (states.includes("none")) tell("unsigned", "The lines agree with each other. No signature was checked.");
  else tell("good", "The lines agree with each other and with the signature. Compare the vkey below with the one that the signer gave you.");
  main.append(...reports.map((report) => section(report, vkey)));
}
void showPage();
`;

export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6676; --paper: #fff; --line: #d9dee6; --good: #18703a; --bad: #b3261e; --note: #7a5200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e9f0; --dim: #9aa5b5; --paper: #12161c; --line: #2c3440; --good: #6fd08c; --bad: #ff8a80; --note: #e8b950; } }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0 0 .5rem; } h2 { font-size: 1.4rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; } h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
#verdict { padding: .6rem .8rem; border: 1px solid var(--line); border-left: 4px solid var(--dim); border-radius: 4px; }
[data-verdict=good] #verdict { border-left-color: var(--good); } [data-verdict=bad] #verdict { border-left-color: var(--bad); color: var(--bad); }
[data-verdict=unsigned] #verdict { border-left-color: var(--note); }
dl { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .1rem 1rem; margin: 0; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
ul.checks { list-style: none; margin: 0; padding: 0; overflow-wrap: anywhere; } .good { color: var(--good); } .bad { color: var(--bad); } .none { color: var(--note); }
ol { list-style: none; margin: 0; padding: 0; } ol li { display: grid; grid-template-columns: 3.5rem 6.5rem minmax(0, 18rem) minmax(0, 1fr); gap: 0 .75rem; padding: .3rem 0; border-top: 1px solid var(--line); }
.seq, .time { color: var(--dim); font-variant-numeric: tabular-nums; } .type { overflow-wrap: anywhere; }
summary, pre, code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; } summary { cursor: pointer; } pre { white-space: pre-wrap; margin: .25rem 0; }
button { margin: .75rem 0; font: inherit; }
footer { color: var(--dim); margin-top: 2rem; border-top: 1px solid var(--line); padding-top: .5rem; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .3rem; } ol li { grid-template-columns: 2.5rem 1fr; } .type, .data { grid-column: 1 / -1; } }
`;
