// Spenders: families of runs that share a budget, and a service that charges when it is called, whatever becomes of the answer.
//
// spenders.P1. What the service charged is at most what the books call spent or lost, and that is within the cap.
// spenders.P2. When all runs have ended, nothing is reserved and no call waits.
// spenders.P3. A rollback of history also takes back what the books knew of calls that were paid. No engine can know of them.
//   Every call was still reserved within the cap of its own history, so each history charges at most one cap.

import { task, workflow, type BudgetOptions, type CallCost, type WorkflowContext } from "reprise";
import type { RandomSource } from "../../replay/random-source.ts";
import { hasEnded, type BudgetReading, type Store } from "../../../src/kernel/index.ts";
import type { Client } from "../client.ts";
import { between, type Part, type PartHost, type RunEnd } from "../part.ts";
import type { Machine } from "../process.ts";

const CAPPED = ["usd", "calls"] as const;
const MICRO = 1_000_000;
/** What a call reserves; it costs this or less in dollars, and exactly one call. */
const RESERVE = { usd: 0.03, calls: 1 };
const PRICES = [0.01, 0.02, 0.03];
const RAISE = { usd: 0.06, calls: 2 };
const RETRY = { maxAttempts: 3, baseDelay: 20 };

interface Answer {
  readonly usd: number;
}

interface Kid {
  readonly id: string;
  readonly calls: number;
  /** Undefined: it shares. */
  readonly budget: BudgetOptions | undefined;
}

interface Family {
  readonly id: string;
  readonly calls: number;
  readonly kids: readonly Kid[];
  readonly cap: { readonly usd: number; readonly calls: number };
  readonly onReached: "ask" | "fail";
  /** Its runs fail at the first error, while other calls of the family go on. */
  readonly isCareless: boolean;
  readonly cancelAfterMs: number | undefined;
  /** How often a person raises the budget before they decline. */
  readonly raises: number;
}

/** Outside of the world: crashes and rollbacks do not change it. */
interface Account {
  usd: number;
  calls: number;
  /** How often a client asked to raise the budget; an unknown outcome may stand for a raise. */
  raised: number;
}

export function spendingPart({ chance, scale }: PartHost): Part {
  const families = Array.from({ length: Math.max(1, Math.round(between(chance, 1, 3) * scale)) }, (_, index) =>
    drawFamily(chance, `spends-${index}`),
  );
  const accounts = families.map((): Account => ({ usd: 0, calls: 0, raised: 0 }));
  return {
    name: "spending",
    features: ["budget", "operation", "task", "child", "start"],
    definitions: (machine) => families.flatMap((family, index) => familyOf(family, accounts[index]!, machine)),
    async drive(client) {
      const pauses = families.map(() => chance.below(1_500));
      await Promise.all(
        families.map(async (family, index) => {
          await client.sleep(pauses[index]!);
          await client.start(family.id, undefined, family.id);
          const canceled = cancelLater(client, family);
          await attend(client, family, accounts[index]!);
          await canceled;
        }),
      );
    },
    *judge(ends) {
      for (const family of families) yield* problemsOfEnd(family, ends.get(family.id));
    },
    async *audit(store, ends, rollbacks) {
      for (const [index, { id, kids, cap }] of families.entries()) {
        const books = await booksOf(store, ends.get(id));
        if (books === undefined) yield `budget: run ${id} has none`;
        else yield* problemsOfBooks(id, books, cap, accounts[index]!, rollbacks);
        for (const kid of kids) yield* leftIn(kid.id, await booksOf(store, ends.get(kid.id)));
      }
    },
  };
}

function drawFamily(chance: RandomSource, id: string): Family {
  const kids = Array.from({ length: between(chance, 0, 2) }, (_, n): Kid => {
    const [calls, own, cap] = [between(chance, 1, 3), chance.happens(0.3), between(chance, 1, 3)];
    return { id: `${id}-kid-${n}`, calls, budget: own ? { calls: cap, onReached: "fail" } : undefined };
  });
  const calls = between(chance, 1, 4);
  const planned = calls + kids.reduce((sum, kid) => sum + kid.calls, 0);
  // Sometimes too little even without a loss.
  const capped = Math.max(1, planned + between(chance, -2, 3));
  return {
    ...{ id, calls, kids },
    cap: { usd: Math.round(capped * RESERVE.usd * MICRO), calls: capped },
    onReached: chance.pick(["ask", "fail"]),
    isCareless: chance.happens(0.25),
    cancelAfterMs: chance.happens(0.2) ? chance.below(2_000) : undefined,
    raises: between(chance, 0, 3),
  };
}

function familyOf(family: Family, account: Account, machine: Machine) {
  const { id, calls, kids, cap, onReached, isCareless } = family;
  const call = async (): Promise<Answer> => {
    const { chance } = machine;
    if (chance.happens(0.1)) throw new Error("refused");
    const usd = chance.pick(PRICES);
    account.usd += Math.round(usd * MICRO);
    account.calls += 1;
    await machine.work("call");
    if (chance.happens(0.15)) throw new Error("the answer got lost");
    return { usd };
  };
  const cost: CallCost<Answer> = {
    reserve: RESERVE,
    actual: ({ usd }) => ({ usd, calls: 1 }),
    unbilled: ({ message }) => message === "refused",
  };
  const paid = task(`${id} paid`, { cost, retry: RETRY }, call);
  const step = (ctx: WorkflowContext, n: number): Promise<Answer> =>
    n % 3 === 2 ? ctx.task(paid) : ctx.run("call", call, { cost, retry: RETRY });
  /** Two calls at a time; the number of answers. */
  const pay = async (ctx: WorkflowContext, count: number): Promise<number> => {
    let answers = 0;
    for (let n = 0; n < count; n += 2) {
      const both = [step(ctx, n), ...(n + 1 < count ? [step(ctx, n + 1)] : [])];
      if (isCareless) answers += (await Promise.all(both)).length;
      else answers += (await Promise.allSettled(both)).filter(({ status }) => status === "fulfilled").length;
    }
    return answers;
  };
  const kid = workflow(`${id} kid`, (ctx, count: number) => pay(ctx, count));
  const budget = { usd: cap.usd / MICRO, calls: cap.calls, onReached };
  const parent = workflow(id, { budget }, async (ctx) => {
    const started = kids.map((each) =>
      ctx.child(kid, each.calls, { id: each.id, ...(each.budget && { budget: each.budget }) }),
    );
    const all = [pay(ctx, calls), ...started];
    return isCareless ? (await Promise.all(all)).length : (await Promise.allSettled(all)).length;
  });
  return [parent, kid, paid];
}

async function cancelLater(client: Client, { id, cancelAfterMs }: Family): Promise<void> {
  if (cancelAfterMs === undefined) return;
  await client.sleep(cancelAfterMs);
  await client.tell(`cancel ${id}`, (core) => core.get(id as never, id).cancel());
}

/** Answers what the family asks for, until it has ended and history stays. */
async function attend(client: Client, family: Family, account: Account): Promise<void> {
  const { id, kids, raises } = family;
  for (let left = raises; ;) {
    const seen = await client.ask(`look at ${id}`, async (core) => ({
      runs: await Promise.all([id, ...kids.map((kid) => kid.id)].map((each) => core.find(each))),
      // History may go back between the two.
      budget: await core
        .get(id as never, id)
        .budget()
        .catch(() => undefined),
    }));
    const runs = seen.runs.filter((run) => run !== undefined);
    if (client.isSettled && seen.runs[0] !== undefined && runs.every(({ status }) => hasEnded(status))) return;
    for (const run of runs)
      if (run.status === "blocked")
        await client.tell(
          `resume ${run.id}`,
          (core) => core.get((run.id === id ? id : `${id} kid`) as never, run.id).resume(),
          true,
        );
    if ((seen.budget?.waiting.length ?? 0) > 0) {
      if (left > 0)
        await client.tell(`raise ${id}`, async (core) => {
          account.raised += 1;
          await core.get(id as never, id).raise(RAISE);
        });
      else await client.tell(`decline ${id}`, (core) => core.get(id as never, id).declineBudget());
      left -= 1;
    }
    await client.sleep(300);
  }
}

function* problemsOfEnd({ id, kids, isCareless, cancelAfterMs }: Family, end: RunEnd | undefined): Iterable<string> {
  if (end === undefined) return yield `I15 run ${id} was started and does not exist`;
  const { record, output, error = "" } = end;
  if (record.status === "cancelled" && cancelAfterMs !== undefined) return;
  if (record.status === "failed" && isCareless && /BUDGET_REACHED|refused|the answer got lost|CHILD_/.test(error))
    return;
  if (record.status !== "completed") yield `run ${id} ended as ${record.status}: ${error}`;
  else if (output !== 1 + kids.length) yield `run ${id} gave ${JSON.stringify(output)}, expected ${1 + kids.length}`;
}

async function booksOf(store: Store, end: RunEnd | undefined): Promise<BudgetReading | undefined> {
  const budget = end?.record.budget;
  return budget === undefined ? undefined : store.readBudget(budget);
}

/** spenders.P1, spenders.P3 */
function* problemsOfBooks(
  id: string,
  books: BudgetReading,
  started: Family["cap"],
  account: Account,
  rollbacks: number,
): Iterable<string> {
  yield* leftIn(id, books);
  for (const dimension of CAPPED) {
    const charged = account[dimension];
    const raise = dimension === "usd" ? Math.round(RAISE.usd * MICRO) : RAISE.calls;
    const most = started[dimension] + account.raised * raise;
    const cap = books.cap[dimension] ?? Number.POSITIVE_INFINITY;
    const booked = books.spent[dimension] + books.lost[dimension];
    if (cap > most) yield `budget: run ${id} has a cap of ${cap} ${dimension}, expected at most ${most}`;
    if (booked > cap) yield `budget: run ${id} spent and lost ${booked} ${dimension} of ${cap}`;
    if (rollbacks === 0 && charged > booked)
      yield `budget: run ${id} was charged ${charged} ${dimension}, but spent and lost ${booked}`;
    if (charged > most * (rollbacks + 1))
      yield `budget: run ${id} was charged ${charged} ${dimension} of ${most}, with ${rollbacks} rollbacks`;
  }
}

/** spenders.P2 */
function* leftIn(id: string, books: BudgetReading | undefined): Iterable<string> {
  if (books === undefined) return;
  const { reserved, waiting } = books;
  if (Object.values(reserved).some((amount) => amount !== 0))
    yield `budget: run ${id} has ended and still reserves ${JSON.stringify(reserved)}`;
  if (waiting.length > 0) yield `budget: run ${id} has ended and ${waiting.length} calls wait`;
}
