// Kills, budgets, approvals and streams together: processes of the support agent die in the middle of answers, people answer and
// raise budgets meanwhile, and the provider and the bank keep their own books.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createClient, type Client, type OpenPromiseInfo, type Run } from "reprise";
import { expect, test } from "vitest";
import { definitions, support } from "../../examples/support-agent/agent.ts";
import { readLedger } from "../../examples/support-agent/shop.ts";
import { startCompletions, type CompletionsServer } from "../ai/completions-server.ts";
import { collect, createFolder, macrotask } from "../engine/world.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";

const SERVER = fileURLToPath(new URL("../../examples/support-agent/server.ts", import.meta.url));
const TICKETS = ["ticket-a", "ticket-b", "ticket-c"];
/** The process dies before it gets these words of all answers, and once while the bank is called. */
const KILLED_AT = [3, 60];
/** Three calls fit, and not many more: a call that a kill interrupts stays paid. */
const BUDGET = { usd: 0.006 };
const RAISE = { usd: 0.004 };
/** Those of models.ts for MODEL, per token. */
const PRICE = { input: 0.5e-6, output: 2e-6 };

interface Place {
  readonly store: string;
  readonly ledger: string;
  readonly models: string;
}

class KillableServer implements AsyncDisposable {
  readonly #place: Place;
  #child: Promise<ChildProcess>;
  kills = 0;

  constructor(place: Place) {
    this.#place = place;
    this.#child = this.#start();
  }

  async #start(): Promise<ChildProcess> {
    const { store, ledger, models } = this.#place;
    const env = { STORE: store, LEDGER: ledger, MODEL_URL: models, MODEL: "small", PORT: "0", BANK_MS: "300" };
    const child = fork(SERVER, {
      env: { ...process.env, ...env },
      execArgv: ["--conditions=reprise-source"],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    await once(child, "message");
    return child;
  }

  async kill(): Promise<void> {
    const child = await this.#child;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    this.kills += 1;
    this.#child = this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    (await this.#child).kill("SIGKILL");
  }
}

/** What the provider has billed for a run, in USD. */
function paidFor({ requests }: CompletionsServer, id: string): number {
  const own = requests.filter(({ messages }) => messages.some(({ content }) => content?.includes(id) === true));
  return own.reduce((sum, { billed }) => sum + billed.input * PRICE.input + billed.output * PRICE.output, 0);
}

async function answer(client: Client<typeof support>, models: CompletionsServer, open: OpenPromiseInfo): Promise<void> {
  const run = client.get(support, open.runId);
  if (open.kind === "budget") {
    const { cap } = (await run.budget())!;
    expect(paidFor(models, run.id)).toBeLessThanOrEqual(cap.usd!);
    await run.raise(RAISE, { by: "Eve" });
    return;
  }
  const { order } = (open.show as { input: { order: string } }).input;
  const value = order === "1042" ? { ok: true } : { ok: false, reason: "no receipt" };
  await run.resolve("approve", value, { key: open.key!, by: "Eve" });
}

/** The text of the last answer, as a reader shows it who reads the stream now. */
async function shownBy(run: Run<typeof support>): Promise<string> {
  const texts = new Map<string, string>();
  for await (const { value: frame } of run.stream("words")) {
    if (frame?.part === "begin") texts.set(frame.call, "");
    if (frame?.part === "text") texts.set(frame.call, `${texts.get(frame.call)}${frame.delta}`);
  }
  return [...texts.values()].at(-1) ?? "";
}

async function surviveKills(store: string, ledger: string): Promise<void> {
  let words = 0;
  const due = [...KILLED_AT];
  const onWord = async (): Promise<void> => {
    if (words++ !== due[0]) return macrotask();
    due.shift();
    await server.kill();
  };
  await using models = await startCompletions({ small: "friendly" }, { onWord });
  await using client = await createClient({ store, definitions });
  await using server = new KillableServer({ store, ledger, models: models.url });
  const question = (id: string): string => `I am ${id}. Order 1042 arrived broken, and 1043 was charged twice.`;
  const runs = await Promise.all(TICKETS.map((id) => client.start(support, question(id), { id, budget: BUDGET })));
  const results = Promise.all(runs.map((run) => run.result({ timeout: "100 s" })));
  let hasEnded = false;
  void results.finally(() => (hasEnded = true)).catch(() => {});
  let isBankKilled = false;
  while (!hasEnded) {
    // Reads of SQLite are synchronous: the server of the provider gets its turn here.
    await macrotask();
    for (const open of await Array.fromAsync(client.promises()))
      // A second click, or one that comes late, is refused and changes nothing.
      await answer(client, models, open).catch((error: { code?: string }) => {
        if (error.code !== "PROMISE_ALREADY_RESOLVED" && error.code !== "RUN_ENDED") throw error;
      });
    if (!isBankKilled && readLedger(ledger).length > 0) {
      isBankKilled = true;
      await server.kill();
    }
  }

  const expected = "49.90 EUR for order 1042 are on their way. One refund was declined: no receipt.";
  expect(await results).toEqual(TICKETS.map(() => expect.stringContaining(expected) as string));
  expect(server.kills).toBeGreaterThanOrEqual(KILLED_AT.length);
  for (const run of runs) {
    const { cap, spent, lost, reserved } = (await run.budget())!;
    const paid = paidFor(models, run.id);
    // The books of the engine never fall behind those of the provider, and never pass the cap.
    expect(paid).toBeLessThanOrEqual(spent.usd! + (lost.usd ?? 0) + 1e-9);
    expect(spent.usd! + (lost.usd ?? 0)).toBeLessThanOrEqual(cap.usd! + 1e-9);
    expect(reserved.usd ?? 0).toBe(0);
    expect(await shownBy(run)).toBe(await run.result());
    const ended = (await collect(run.journal())).filter(({ type }) => /(?:Completed|Resolved)$/.test(type));
    expect(new Set(ended.map(({ command }) => command)).size).toBe(ended.length);
  }
  // Answers under way were paid for again, and no others: three per run.
  expect(models.requests.length).toBeGreaterThan(3 * runs.length);
  expect(models.requests.length).toBeLessThanOrEqual(3 * runs.length + server.kills * runs.length);
  const keys = new Set(readLedger(ledger).map(({ order, key }) => `${order} ${key}`));
  expect(keys.size).toBe(runs.length);
  expect([...keys].every((key) => key.startsWith("1042 "))).toBe(true);
}

const NAME = "agents whose process dies in the middle of answers stay within their budgets, and refund once";

test(`on SQLite: ${NAME}`, { timeout: 120_000 }, async () => {
  using folder = createFolder();
  await surviveKills(`sqlite:${folder.file("support.db")}`, folder.file("ledger.jsonl"));
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on ${kind}`, () => {
    test(NAME, { timeout: 120_000 }, async () => {
      using folder = createFolder();
      await using database = await freshDatabase(kind);
      await surviveKills(database.url, folder.file("ledger.jsonl"));
    });
  });
