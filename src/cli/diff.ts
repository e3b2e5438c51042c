// reprise diff: compares two runs of a definition, from the first step, command or node where they differ.

import { isDeepStrictEqual } from "node:util";
import { RepriseError } from "../base/index.ts";
import type { ChannelDiff, Client, RunDiff, StepDiff } from "../engine/index.ts";
import type { Store } from "../kernel/index.ts";
import { listJson, listOf, printList } from "./diff-list.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { redacted } from "./payload-module.ts";
import { jsonOf } from "./run-format.ts";
import { plain, showValue } from "./text.ts";

export interface DiffCommandOptions extends GlobalOptions {
  /** The store of the other run, if it is not the same (resolve-runs.ts). */
  readonly otherStore?: string;
  readonly limit: number;
  readonly showSecrets?: boolean;
}

export async function diff(id: string, other: string, options: DiffCommandOptions): Promise<number> {
  return withStores(options, async (store, otherStore) => {
    const [here, there] = [await getRun(store, id), await getRun(otherStore, other)];
    if (here.definition !== there.definition)
      throw new RepriseError(
        "USAGE",
        `Run ${id} is a run of ${here.definition}, run ${other} of ${there.definition}. Only runs of the same definition can be compared.`,
      );
    const definitions = [placeholderDefinition(here.definition, {}, here.version)];
    const found = await withClient(store, definitions, (engine) => {
      const compare = (others: Client) =>
        engine.get(here.definition, id).diff(others.get(here.definition, other), { limit: options.limit });
      return otherStore === store ? compare(engine) : withClient(otherStore, definitions, compare);
    });
    if (!("steps" in found)) {
      const list = listOf(found, options.showSecrets === true);
      await (options.json ? printJson(listJson(list)) : printList(list, id, other));
    } else {
      const visible = options.showSecrets === true ? found : { ...found, steps: found.steps.map(withoutSecrets) };
      await (options.json ? printJson(diffJson(visible)) : printDiff(visible, id, other));
    }
    return found.firstDivergence === undefined ? EXIT.ok : EXIT.problem;
  });
}

/** Both are the same store, unless one of the runs is in a mirror. */
function withStores(
  { store, otherStore }: DiffCommandOptions,
  work: (store: Store, other: Store) => Promise<number>,
): Promise<number> {
  return withStoreToRead(store, (here) =>
    otherStore === undefined ? work(here, here) : withStoreToRead(otherStore, (there) => work(here, there)),
  );
}

/** Redaction needs the name of the channel, so each value is wrapped in an object. */
function withoutSecrets(step: StepDiff): StepDiff {
  const side = (name: string, value: unknown): unknown => redacted({ [name]: value })[name];
  const channels = Object.entries(step.channels).map(([name, channel]): [string, ChannelDiff] => [
    name,
    {
      ...("here" in channel && { here: side(name, channel.here) }),
      ...("there" in channel && { there: side(name, channel.there) }),
    },
  ]);
  return { ...step, channels: Object.fromEntries(channels) };
}

function diffJson({ firstDivergence, steps, more }: RunDiff): object {
  return {
    same: firstDivergence === undefined,
    firstDivergence: firstDivergence ?? null,
    more,
    steps: steps.map((step) => ({
      step: step.step,
      in: step.in,
      channels: Object.fromEntries(
        Object.entries(step.channels).map(([name, channel]) => [
          name,
          Object.fromEntries(Object.entries(channel).map(([where, value]) => [where, jsonOf(value)])),
        ]),
      ),
      next: step.next ?? null,
    })),
  };
}

async function printDiff({ firstDivergence, steps, more }: RunDiff, id: string, other: string): Promise<void> {
  if (firstDivergence === undefined)
    return print(`${paint("green", "same")} ${plain(id)} and ${plain(other)}: all steps are equal`);
  await print(`${paint("yellow", "differ")} from step ${firstDivergence}`);
  await print(paint("dim", `  - ${plain(id)}\n  + ${plain(other)}`));
  const before: Seen = { here: new Map(), there: new Map() };
  for (const step of steps) await printStep(step, before, id, other);
  if (more) await print(paint("dim", "… more steps differ; show them with a higher --limit"));
}

/** The value printed last for each channel, by side. */
type Seen = Readonly<Record<Side, Map<string, unknown>>>;
type Side = "here" | "there";

async function printStep(
  { step, in: where, channels, next }: StepDiff,
  before: Seen,
  id: string,
  other: string,
): Promise<void> {
  const only = where === "both" ? "" : paint("dim", `  only in ${plain(where === "here" ? id : other)}`);
  await print(`\n${paint("bold", `step ${step}`)}${only}`);
  const room = Math.max(40, lineWidth() - 6);
  const line = async (side: Side, what: string, value: unknown): Promise<void> =>
    print(paint(COLOR[side], `  ${SIGN[side]} ${plain(what)}: ${showValue(value, room - what.length)}`));
  for (const [name, channel] of Object.entries(channels))
    for (const side of ["here", "there"] as const) {
      if (!(side in channel)) continue;
      const value = channel[side];
      const against = where === "both" ? channel[side === "here" ? "there" : "here"] : before[side].get(name);
      const isRepeated = where !== "both" && before[side].has(name) && isDeepStrictEqual(value, against);
      before[side].set(name, value);
      if (!isRepeated) await line(side, ...restOf(name, value, against));
    }
  if (next === undefined) return;
  const nodes = (names: readonly string[]): string => (names.length === 0 ? "end" : names.map(plain).join(", "));
  for (const side of ["here", "there"] as const)
    if (next[side] !== undefined) await print(paint(COLOR[side], `  ${SIGN[side]} next: ${nodes(next[side])}`));
}

const SIGN = { here: "-", there: "+" } as const;
const COLOR = { here: "red", there: "green" } as const;

/** Lists usually grow at the end: the common beginning is omitted, `messages[4…]`. */
function restOf(name: string, value: unknown, against: unknown): [string, unknown] {
  if (!Array.isArray(value) || !Array.isArray(against)) return [name, value];
  const common = value.findIndex((item, index) => index >= against.length || !isDeepStrictEqual(item, against[index]));
  const start = common < 0 ? value.length : common;
  return start === 0 ? [name, value] : [`${name}[${start}…]`, value.slice(start)];
}
