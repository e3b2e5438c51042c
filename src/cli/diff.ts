// reprise diff: compares two runs of a graph, from the first step where they differ.

import { isDeepStrictEqual } from "node:util";
import { RepriseError } from "../base/index.ts";
import type { ChannelDiff, RunDiff, StepDiff } from "../engine/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun, withStore } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { redacted } from "./payload-module.ts";
import { jsonOf } from "./run-format.ts";
import { plain, showValue } from "./text.ts";

export interface DiffCommandOptions extends GlobalOptions {
  readonly limit: number;
  readonly showSecrets?: boolean;
}

export async function diff(id: string, other: string, options: DiffCommandOptions): Promise<number> {
  return withStore(options.store, async (store) => {
    const [here, there] = [await getRun(store, id), await getRun(store, other)];
    if (here.definition !== there.definition)
      throw new RepriseError(
        "USAGE",
        `Run ${id} is a run of ${here.definition}, run ${other} of ${there.definition}. Only runs of the same graph can be compared.`,
      );
    const found = await withClient(store, [placeholderDefinition(here.definition, {}, here.version)], (engine) =>
      engine.get(here.definition, id).diff(engine.get(here.definition, other), { limit: options.limit }),
    );
    const visible = options.showSecrets === true ? found : { ...found, steps: found.steps.map(withoutSecrets) };
    if (options.json) await printJson(diffJson(visible));
    else await printDiff(visible, id, other);
    return found.firstDivergence === undefined ? EXIT.ok : EXIT.problem;
  });
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
