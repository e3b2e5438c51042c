// The page: asks, shows the words as they come, and answers approvals. All of its state is the id of the run, in the address:
// after a reload it reads the same words from the store, and continues where they are.

const API = "/reprise/v1";
const element = (id) => document.getElementById(id);

const send = (path, body) =>
  fetch(`${API}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-reprise": "1" },
    body: JSON.stringify(body),
  });

async function ask(question) {
  const response = await send("/definitions/support/runs", { input: question });
  location.hash = (await response.json()).id;
  location.reload();
}

element("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  void ask(element("question").value);
});

/** By call of the model: its words, and how often the call was made. */
const calls = new Map();

function take({ call, execution, part, delta = "", error }) {
  const known = calls.get(call);
  // A worker died during this call, and another one makes it again: the words so far are void.
  if (known === undefined || known.execution < execution) calls.set(call, { execution, text: "", live: true });
  const state = calls.get(call);
  if (state.execution > execution) return;
  if (part === "text") state.text += delta;
  if (part === "end" || part === "failed") state.live = false;
  if (part === "failed") state.error = error;
}

const STATUS = { running: "The agent works.", waiting: "The agent works.", completed: "Done." };

let run;
/** The keys that were answered here. */
const decided = new Set();

function show() {
  const texts = [...calls.values()].filter(({ text, live, error }) => text !== "" || live || error !== undefined);
  element("conversation").replaceChildren(
    message("customer", run.input),
    ...texts.map(({ text, live, error }) => message(live ? "agent live" : "agent", error ?? text)),
    ...run.openPromises.map((open) => (open.kind === "budget" ? moreMoney(open) : approval(open))),
  );
  const { cap, spent } = run.budget;
  element("budget").textContent = `Spent ${(spent.usd ?? 0).toFixed(4)} of ${cap.usd} USD.`;
  element("ask").hidden = run.endedAt === undefined;
  const isAsked = run.openPromises.length > 0;
  element("status").textContent = isAsked
    ? "The agent waits for a colleague's approval."
    : (STATUS[run.status] ?? run.status);
}

function message(kind, text) {
  const node = document.createElement("div");
  node.className = `message ${kind}`;
  node.textContent = text;
  return node;
}

function approval({ name, key, show: asked }) {
  return card(describe(asked), key, { Approve: () => answer(name, key, true), Refuse: () => answer(name, key, false) });
}

/** A call that the budget does not allow waits, too. */
function moreMoney({ key }) {
  const raise = () => send(`/runs/${run.id}/raise`, { add: { usd: 0.05 }, by: "a colleague" });
  const decline = () => send(`/runs/${run.id}/decline-budget`, { by: "a colleague" });
  return card("The budget is used up. Add 0.05 USD?", key, { Add: raise, Stop: decline });
}

/** A question with buttons. */
function card(text, key, actions) {
  const node = document.createElement("div");
  node.className = "approval";
  const what = document.createElement("p");
  what.textContent = text;
  node.append(what, ...Object.entries(actions).map(([name, action], n) => button(name, key, action, n > 0)));
  return node;
}

function button(text, key, action, isSecond) {
  const made = document.createElement("button");
  made.textContent = text;
  made.className = isSecond ? "second" : "";
  made.disabled = decided.has(key);
  made.addEventListener("click", () => {
    decided.add(key);
    void action().then(load);
  });
  return made;
}

function answer(name, key, ok) {
  const path = `/runs/${run.id}/promises/${name}/${encodeURIComponent(key)}`;
  return send(path, { value: { ok }, by: "a colleague" });
}

function describe({ tool, input }) {
  const { order, cents, why } = input ?? {};
  return order === undefined
    ? `${tool} ${JSON.stringify(input)}`
    : `Refund ${(cents / 100).toFixed(2)} EUR for order ${order}: it ${why}.`;
}

async function load() {
  run = await (await fetch(`${API}/runs/${location.hash.slice(1)}`)).json();
  show();
}

if (location.hash !== "") {
  const id = location.hash.slice(1);
  await load();
  const words = new EventSource(`${API}/runs/${id}/streams/words`);
  words.addEventListener("message", ({ data }) => {
    take(JSON.parse(data).value);
    show();
  });
  words.addEventListener("end", () => words.close());
  // `ready` comes first, also after a lost connection: what changed before it is in the answer of `load`.
  const changes = new EventSource(`${API}/events?run=${id}`);
  for (const type of ["ready", "reset", "run", "promise"]) changes.addEventListener(type, () => void load());
  const link = element("run");
  link.href = `/reprise/runs/${id}`;
  link.hidden = false;
}
