// reprise diff: two runs of a graph step by step, from the first step after which they differ.

import { RepriseError } from "../base/index.ts";
import type { ChannelDiff, RunDiff, StepDiff } from "../engine/index.ts";
import { standIn, withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT, lineWidth, paint, print, printJson } from "./output.ts";
import { shown } from "./payload-module.ts";
import { jsonOf } from "./shown-run.ts";
import { plain, showValue } from "./text.ts";

export interface DiffCommandOptions extends GlobalOptions {
  readonly limit: number;
  readonly showSecrets?: boolean;
}

export async function diff(id: string, other: string, options: DiffCommandOptions): Promise<number> {
  return reading(options.store, async (store) => {
    const [here, there] = [await getRun(store, id), await getRun(store, other)];
    if (here.definition !== there.definition)
      throw new RepriseError(
        "USAGE",
        `Run ${id} follows ${here.definition}, run ${other} follows ${there.definition}: their states have nothing to do with each other.`,
      );
    const found = await withClient(store, [standIn(here.definition, {}, here.version)], (engine) =>
      engine.run(here.definition, id).diff(engine.run(here.definition, other), { limit: options.limit }),
    );
    const visible = options.showSecrets === true ? found : { ...found, steps: found.steps.map(withoutSecrets) };
    if (options.json) await printJson(diffJson(visible));
    else await printDiff(visible, id, other);
    return found.firstDivergence === undefined ? EXIT.ok : EXIT.problem;
  });
}

/** The name of a channel may be what says that its value is a secret. */
function withoutSecrets(step: StepDiff): StepDiff {
  const side = (name: string, value: unknown): unknown => shown({ [name]: value })[name];
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
    return print(`${paint("green", "same")} ${plain(id)} and ${plain(other)}: every step left the same behind`);
  await print(`${paint("yellow", "differ")} from step ${firstDivergence} on`);
  await print(paint("dim", `  - ${plain(id)}\n  + ${plain(other)}`));
  for (const step of steps) await printStep(step, id, other);
  if (more) await print(paint("dim", "… and further steps; --limit shows more"));
}

async function printStep({ step, in: where, channels, next }: StepDiff, id: string, other: string): Promise<void> {
  const only = where === "both" ? "" : paint("dim", `  only in ${plain(where === "here" ? id : other)}`);
  await print(`\n${paint("bold", `step ${step}`)}${only}`);
  const room = Math.max(40, lineWidth() - 6);
  const line = async (sign: "-" | "+", what: string, value: unknown): Promise<void> =>
    print(paint(sign === "-" ? "red" : "green", `  ${sign} ${plain(what)}: ${showValue(value, room - what.length)}`));
  for (const [name, channel] of Object.entries(channels)) {
    if ("here" in channel) await line("-", name, channel.here);
    if ("there" in channel) await line("+", name, channel.there);
  }
  if (next === undefined) return;
  const nodes = (names: readonly string[]): string => (names.length === 0 ? "end" : names.map(plain).join(", "));
  if (next.here !== undefined) await print(paint("red", `  - next: ${nodes(next.here)}`));
  if (next.there !== undefined) await print(paint("green", `  + next: ${nodes(next.there)}`));
}
