// UnawaitedCheck: warns about commands that the code of a run never awaited, and that had not ended when the run did. The end
// of the run drops them, so a missing `await` loses work without an error.
//
// unawaited-check.A1. A run that ends without open commands is not checked.
// unawaited-check.A2. A replay says which open commands were not awaited: the losers of a `Promise.race` are open, too. A worker
//   replays once per definition, type and name of a command, one run at a time, and at most `MAX_CHECKS` times.
// unawaited-check.A3. The log has each call once. The event is emitted for every run.

import { emit, isObserved, type CommandType, type RunRecord } from "../kernel/index.ts";
import { findUnawaited, indexJournal, readHistory, type Wait } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { PartsOf } from "./worker-parts.ts";

const MAX_CHECKS = 100;
/** A longer journal is not replayed for a warning. */
const MAX_ENTRIES = 10_000;

/** `place`: the line of the call, if the replay saw it. */
type Verdict = "awaited" | { readonly place: string | undefined };

type OpenCommand = Pick<Wait, "command" | "type" | "name">;

/** A child runs without it. */
const UNCHECKED: ReadonlySet<CommandType> = new Set<CommandType>(["ChildWorkflow", "Node"]);

const NOUNS: Partial<Readonly<Record<CommandType, string>>> = {
  Task: "task",
  Operation: "step",
  Timer: "timer",
  Promise: "the wait for",
};

type UsedParts = PartsOf<"options" | "starts" | "store" | "timers">;

export class UnawaitedCheck {
  readonly #parts: UsedParts;
  readonly #verdicts = new Map<string, Verdict>();
  readonly #logged = new Set<string>();
  #checks = 0;
  #running: Promise<void> | undefined;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  /** The code of the run has returned, and its end is durable. */
  onReturned(run: HotRun): void {
    const { execution, record, head } = run;
    // unawaited-check.A1
    if (execution.waits.isEmpty || execution.nodes !== undefined) return;
    const open = execution.waits.all().filter(({ type }) => !UNCHECKED.has(type));
    const isUnknown = (one: OpenCommand): boolean => !this.#verdicts.has(keyOf(record, one));
    const canCheck = !this.isBusy && this.#checks < MAX_CHECKS && head <= MAX_ENTRIES;
    if (!canCheck || !open.some(isUnknown)) return this.#report(record, open);
    this.#checks += 1;
    this.#running = this.#check(run, open)
      .catch(() => {
        // The run has ended well; it stays without the warning.
      })
      .finally(() => (this.#running = undefined));
  }

  /** unawaited-check.A2 */
  async #check(run: HotRun, open: readonly OpenCommand[]): Promise<void> {
    const { store, timers, starts } = this.#parts;
    const recorded = indexJournal(await readHistory(store, run.record.run));
    const found = await findUnawaited(starts.replay(run, recorded), recorded, timers);
    if (found === undefined) return;
    const places = new Map(found.map(({ command, place }) => [command, { place }]));
    for (const one of open) this.#verdicts.set(keyOf(run.record, one), places.get(one.command) ?? "awaited");
    this.#report(run.record, open);
  }

  #report(record: RunRecord, open: readonly OpenCommand[]): void {
    for (const one of open) {
      const verdict = this.#verdicts.get(keyOf(record, one));
      if (verdict === undefined || verdict === "awaited") continue;
      const { id: run, definition } = record;
      const { command, name } = one;
      const { place } = verdict;
      if (isObserved()) emit({ event: "command.unawaited", run, definition, command, name, place });
      const key = keyOf(record, one);
      // unawaited-check.A3
      if (this.#logged.has(key)) continue;
      this.#logged.add(key);
      this.#parts.options.log("warn", messageOf(record, one, place), {
        run,
        command,
        name,
        ...(place !== undefined && { place }),
      });
    }
  }
}

function keyOf({ definition, version }: RunRecord, { type, name }: OpenCommand): string {
  return JSON.stringify([definition, version, type, name]);
}

function messageOf({ id, definition }: RunRecord, { command, type, name }: OpenCommand, place?: string): string {
  const where = place === undefined ? command : `${command}, at ${place}`;
  return `Run ${id} of ${definition} ended without awaiting ${NOUNS[type] ?? type} \`${name}\` (${where}), which had not ended: the engine dropped it. Await the call, or remove it.`;
}
