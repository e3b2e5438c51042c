// Budgets: books what runs reserve, spend and lose (spending.S1 to spending.S5).
//
// budgets.B1. A budget is locked before it is read, after the run whose reservation changes. So two runs that share it never reserve
//   the same money.

import {
  BUDGET_PROMISE,
  DIMENSIONS,
  MAX_BUDGET_REQUESTS,
  NO_AMOUNTS,
  QueueItemState,
  ReservationState,
  type Amounts,
  type AnswerBudgetWrite,
  type BudgetCap,
  type BudgetReading,
  type BudgetState,
  type Charge,
  type Dimension,
  type EndedRunStatus,
  type NewRun,
  type OpenPromise,
  type ReserveOutcome,
  type ReserveWrite,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Filter, Test } from "../rows/indexes.ts";
import type { Rows } from "../rows/rows.ts";
import { columnsOf, type RowOf } from "../rows/tables.ts";
import { freeSlot } from "./queue-limiter.ts";
import { noteBudgetEvent } from "./run-events.ts";
import type { Tx } from "./transaction.ts";

type BudgetRow = RowOf<"run_budgets">;
type ReservationRow = RowOf<"budget_reservations">;
type Book = "spent" | "reserved" | "lost";

const BUDGET = columnsOf("run_budgets");
const RESERVATION = columnsOf("budget_reservations");

// ── the books of one transaction ──

/** A budget and those that it came from, as one write changes them. */
export class Books {
  readonly #rows: Rows;
  /** From the budget of the run to its ancestors. */
  readonly #chain: BudgetRow[] = [];
  readonly #changed = new Set<BudgetRow>();

  constructor(rows: Rows, budget: RunNumber) {
    this.#rows = rows;
    for (let next: number | null = budget; next !== null;) {
      const row: BudgetRow | undefined = rows.get("run_budgets", [next], BUDGET);
      if (row === undefined) break;
      this.#chain.push({ ...row });
      next = row.parent;
    }
  }

  /** Undefined: it was deleted, or is not loaded. */
  get own(): BudgetRow | undefined {
    return this.#chain[0];
  }

  /** spending.S4 */
  #rowFor(dimension: Dimension, from = 0): BudgetRow | undefined {
    const above = this.#chain.slice(from);
    return above.find((row) => row[`cap_${dimension}`] !== null) ?? above[0];
  }

  /** spending.S2. The budget that has no room for these amounts; undefined: all have. */
  findReached(amounts: Amounts): BudgetRow | undefined {
    for (const dimension of DIMENSIONS) {
      const row = this.#rowFor(dimension);
      if (row !== undefined && amounts[dimension] > 0 && amounts[dimension] > roomIn(row, dimension)) return row;
    }
    return undefined;
  }

  /** Whether calls are in progress, or parts are with children. */
  get isReserved(): boolean {
    return this.#chain.some((row) => DIMENSIONS.some((dimension) => row[`reserved_${dimension}`] > 0));
  }

  /** Whether these amounts fit, after all others that did. Nothing of it is saved. */
  fit(amounts: Amounts): boolean {
    if (this.findReached(amounts) !== undefined) return false;
    this.book("reserved", amounts);
    return true;
  }

  /** A test of amounts: those that fail it do not fit. */
  get fitting(): Filter<"budget_reservations"> {
    const tests: { [D in Dimension]?: Test<number> } = {};
    for (const dimension of DIMENSIONS) {
      const row = this.findCap(dimension);
      if (row !== undefined) tests[dimension] = { most: Math.max(0, roomIn(row, dimension)) };
    }
    return tests;
  }

  /** The budget whose cap applies in this dimension; undefined: none has one. */
  findCap(dimension: Dimension): BudgetRow | undefined {
    return this.#chain.find((row) => row[`cap_${dimension}`] !== null);
  }

  book(book: Book, amounts: Amounts, sign: 1 | -1 = 1): void {
    for (const dimension of DIMENSIONS) {
      const row = this.#rowFor(dimension);
      if (row === undefined || amounts[dimension] === 0) continue;
      row[`${book}_${dimension}`] += sign * amounts[dimension];
      this.#changed.add(row);
    }
  }

  /** Takes a part of this budget for a child: at most what is left. */
  move({ cap }: BudgetCap): { readonly cap: BudgetCap["cap"]; readonly moved: Amounts } {
    const given: { [D in Dimension]?: number } = {};
    const moved: { [D in Dimension]: number } = { ...NO_AMOUNTS };
    for (const dimension of DIMENSIONS) {
      const asked = cap[dimension];
      if (asked === undefined) continue;
      const row = this.#rowFor(dimension);
      given[dimension] = asked;
      if (row === undefined || row[`cap_${dimension}`] === null) continue;
      given[dimension] = moved[dimension] = Math.min(asked, Math.max(0, roomIn(row, dimension)));
      row[`reserved_${dimension}`] += moved[dimension];
      this.#changed.add(row);
    }
    return { cap: given, moved };
  }

  /** Gives what is left to the budget that this one came from, which also gets what was spent and lost. */
  close(): void {
    const { own } = this;
    if (own === undefined || own.parent === null || own.closed === 1) return;
    for (const dimension of DIMENSIONS) {
      const [cap, moved] = [own[`cap_${dimension}`], own[`moved_${dimension}`]];
      // Without a cap of its own, the dimension was booked above all the time.
      const row = cap === null ? undefined : this.#rowFor(dimension, 1);
      if (row === undefined || cap === null) continue;
      // A call of a child may still run, and may have been paid.
      const lost = own[`lost_${dimension}`] + own[`reserved_${dimension}`];
      const above = row[`cap_${dimension}`];
      // What was raised here is no part of what moved.
      if (above !== null) row[`cap_${dimension}`] = above + Math.max(0, cap - moved);
      if (above !== null) row[`reserved_${dimension}`] -= moved;
      row[`spent_${dimension}`] += own[`spent_${dimension}`];
      row[`lost_${dimension}`] += lost;
      own[`cap_${dimension}`] = own[`spent_${dimension}`] + lost;
      this.#changed.add(row);
    }
    own.closed = 1;
    this.#changed.add(own);
  }

  raise(add: NonNullable<AnswerBudgetWrite["add"]>): Dimension | undefined {
    const { own } = this;
    if (own === undefined) return undefined;
    for (const dimension of DIMENSIONS) {
      const amount = add[dimension] ?? 0;
      if (amount === 0) continue;
      const cap = own[`cap_${dimension}`];
      if (cap === null) return dimension;
      own[`cap_${dimension}`] = cap + amount;
      this.#changed.add(own);
    }
    return undefined;
  }

  save(): void {
    for (const { budget, ...values } of this.#changed) this.#rows.set("run_budgets", [budget], values);
  }
}

function roomIn(row: BudgetRow, dimension: Dimension): number {
  const cap = row[`cap_${dimension}`] ?? Number.POSITIVE_INFINITY;
  return cap - row[`spent_${dimension}`] - row[`lost_${dimension}`] - row[`reserved_${dimension}`];
}

function amountsIn(row: BudgetRow, book: Book): Amounts {
  return { usd: row[`${book}_usd`], tokens: row[`${book}_tokens`], calls: row[`${book}_calls`] };
}

function stateOf(row: BudgetRow): BudgetState {
  const caps = DIMENSIONS.map((dimension) => [dimension, row[`cap_${dimension}`]] as const);
  return {
    owner: row.owner,
    onReached: row.on_reached,
    cap: Object.fromEntries(caps.filter(([, cap]) => cap !== null)) as BudgetState["cap"],
    spent: amountsIn(row, "spent"),
    reserved: amountsIn(row, "reserved"),
    lost: amountsIn(row, "lost"),
  };
}

// ── a run begins ──

/** The budget of a new run. `parent`: the budget of the run that starts it, unless the new run is detached. */
export function openBudget(
  { rows }: Tx,
  run: RunNumber,
  { id, budget }: Pick<NewRun, "id" | "budget">,
  parent: RunNumber | null,
): RunNumber | null {
  if (budget === undefined) return parent;
  if (budget === "none") return null;
  const above = parent === null ? undefined : new Books(rows, parent);
  const { cap, moved } = above?.move(budget) ?? { cap: budget.cap, moved: NO_AMOUNTS };
  above?.save();
  rows.insert("run_budgets", newRow(run, id, budget.onReached, parent, cap, moved));
  return run;
}

/** The budget of a run that has not started, and that another start rewrites. */
export function replaceBudget({ rows }: Tx, run: RunNumber, { id, budget }: Pick<NewRun, "id" | "budget">): void {
  const present = rows.get("run_budgets", [run], OWNER);
  const hasRow = present !== undefined;
  const isCapped = typeof budget === "object";
  if (isCapped) {
    const row = newRow(run, present?.owner ?? id, budget.onReached, null, budget.cap, NO_AMOUNTS);
    const { budget: _key, ...values } = row;
    if (hasRow) rows.set("run_budgets", [run], values);
    else rows.insert("run_budgets", row);
  } else if (hasRow) rows.drop("run_budgets", [run]);
  if (isCapped || hasRow) rows.set("runs", [run], { budget: isCapped ? run : null });
}

const OWNER = ["owner"] as const;

function newRow(
  budget: RunNumber,
  owner: string,
  onReached: BudgetCap["onReached"],
  parent: RunNumber | null,
  cap: BudgetCap["cap"],
  moved: Amounts,
): BudgetRow {
  return {
    ...{ budget, owner, parent, on_reached: onReached, closed: 0 },
    ...{ cap_usd: cap.usd ?? null, cap_tokens: cap.tokens ?? null, cap_calls: cap.calls ?? null },
    ...{ moved_usd: moved.usd, moved_tokens: moved.tokens, moved_calls: moved.calls },
    ...{ spent_usd: 0, spent_tokens: 0, spent_calls: 0 },
    ...{ reserved_usd: 0, reserved_tokens: 0, reserved_calls: 0 },
    ...{ lost_usd: 0, lost_tokens: 0, lost_calls: 0 },
  };
}

// ── reservations ──

/** spending.S1 */
export function applyReserve(tx: Tx, write: ReserveWrite): ReserveOutcome {
  const { rows, now } = tx;
  const { run, token, command, execution, reserve, item } = write;
  const isHeld =
    item === undefined
      ? rows.is("runs", [run], { turn_token: token })
      : rows.own("runs", [run]) && rows.is("queue", [run, command], { token });
  if (!isHeld) return { status: "lease_lost" };
  const earlier = rows.get("budget_reservations", [run, command], RESERVATION);
  const books = new Books(rows, write.budget);
  const { own } = books;
  if (own === undefined) return { status: "reserved" };
  const capped = write.unpriced === true ? books.findCap("usd") : undefined;
  if (capped !== undefined) return { status: "unpriced", budget: stateOf(capped) };
  const amounts: Amounts = reserve;
  if (earlier?.state === ReservationState.open) {
    books.book("reserved", earlier, -1);
    books.book("lost", earlier);
  }
  const isDeclined = earlier?.state === ReservationState.declined;
  const reached = isDeclined ? own : books.findReached(amounts);
  if (reached === undefined) books.book("reserved", amounts);
  books.save();
  const wasWaiting = earlier?.state === ReservationState.waiting;
  const isWaiting = reached !== undefined && !isDeclined && own.on_reached === "ask";
  if (reached !== undefined && !isWaiting) {
    if (earlier !== undefined) rows.drop("budget_reservations", [run, command]);
    return { status: isDeclined ? "declined" : "reached", budget: stateOf(reached) };
  }
  const row: Omit<ReservationRow, "run" | "command"> = {
    // A request is found by the budget that has no room for it.
    budget: isWaiting ? reached.budget : write.budget,
    execution,
    state: isWaiting ? ReservationState.waiting : ReservationState.open,
    item: item === undefined ? 0 : 1,
    ...amounts,
    at: wasWaiting ? earlier.at : now,
  };
  if (earlier === undefined) rows.insert("budget_reservations", { run, command, ...row });
  else rows.set("budget_reservations", [run, command], row);
  if (reached === undefined) {
    if (wasWaiting) rows.drop("run_promises", [run, command]);
    return { status: "reserved" };
  }
  if (item !== undefined) parkItem(tx, write, item);
  if (!wasWaiting) {
    rows.insert("run_promises", { run, command, name: BUDGET_PROMISE, key: null, seq: 0, at: now });
    noteBudgetEvent(tx, run);
  }
  return { status: "waiting", budget: stateOf(reached) };
}

/** The item waits without a worker. Its code was not called. */
function parkItem(
  tx: Tx,
  { run, command, execution }: ReserveWrite,
  { slot }: NonNullable<ReserveWrite["item"]>,
): void {
  const state = QueueItemState.stopped;
  tx.rows.set("queue", [run, command], { state, token: null, worker: null, takeovers: 0, executions: execution - 1 });
  if (slot !== undefined) freeSlot(tx, "task", slot);
}

/** spending.S3. Nothing happens if this execution has no reservation: it made none, or a later one has made it a loss. */
export function settle({ rows }: Tx, run: RunNumber, command: string, charge: Charge, execution?: number): void {
  const row = rows.get("budget_reservations", [run, command], RESERVATION);
  if (row === undefined || row.state !== ReservationState.open) return;
  if (execution !== undefined && row.execution !== execution) return;
  const books = new Books(rows, row.budget);
  books.book("reserved", row, -1);
  if (charge !== "free") books.book(charge === "lost" ? "lost" : "spent", charge === "lost" ? row : charge);
  books.save();
  rows.drop("budget_reservations", [run, command]);
}

/** spending.S5. A generation that continues keeps its budget. */
export function endSpending(tx: Tx, run: RunNumber, budget: RunNumber, status: EndedRunStatus): void {
  const { rows } = tx;
  const books = new Books(rows, budget);
  for (const row of rows.select("budget_reservations", [run], RESERVATION)) {
    if (row.state === ReservationState.open) {
      books.book("reserved", row, -1);
      books.book("lost", row);
    } else rows.drop("run_promises", [run, row.command]);
    rows.drop("budget_reservations", [run, row.command]);
  }
  const id = rows.get("runs", [run], ID)?.id;
  if (status !== "continued" && id !== undefined && id === books.own?.owner) books.close();
  books.save();
}

const ID = ["id"] as const;

/** A command that the run no longer waits for: its call may have been paid. */
export function dropReservation(tx: Tx, run: RunNumber, command: string): void {
  const row = tx.rows.get("budget_reservations", [run, command], STATE);
  if (row?.state === ReservationState.open) return settle(tx, run, command, "lost");
  if (row === undefined) return;
  tx.rows.drop("budget_reservations", [run, command]);
  tx.rows.drop("run_promises", [run, command]);
}

const STATE = ["state"] as const;

// ── reading ──

/** open-promise.P3. What a call that waits would reserve, and the budget that has no room for it. */
export function findRequest(rows: Rows, run: RunNumber, command: string): OpenPromise["budget"] {
  const row = rows.get("budget_reservations", [run, command], RESERVATION);
  if (row === undefined || row.state !== ReservationState.waiting) return undefined;
  const { usd, tokens, calls } = row;
  const books = new Books(rows, row.budget);
  const reached = books.findReached({ usd, tokens, calls }) ?? books.own;
  return reached && { state: stateOf(reached), reserve: { usd, tokens, calls } };
}

const REQUESTED = ["run", "command", "usd", "tokens", "calls", "at"] as const;

export function readBudget(rows: Rows, budget: RunNumber): BudgetReading | undefined {
  const row = rows.get("run_budgets", [budget], BUDGET);
  const requests = rows.select("budget_reservations_waiting", [budget], REQUESTED, { limit: MAX_BUDGET_REQUESTS });
  const ids = requests.map(({ run }) => rows.get("runs", [run], ID)?.id ?? "");
  if (row === undefined) return undefined;
  const waiting = requests.map(({ run, command, usd, tokens, calls, at }, index) => ({
    ...{ run, command, at, runId: ids[index]! },
    reserve: { usd, tokens, calls },
  }));
  return { ...stateOf(row), waiting };
}
