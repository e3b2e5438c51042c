// Diff list: prints how two runs of a workflow or a flow differ, one command or node after the other.

import type { FlowDiff, StepAnswer, ValueDiff, WorkflowDiff } from "../engine/index.ts";
import { lineWidth, paint, print } from "./output.ts";
import { redacted } from "./payload-module.ts";
import { jsonOf } from "./run-format.ts";
import { plain, showValue } from "./text.ts";

interface Row {
  readonly key: string;
  readonly in: "both" | "here" | "there";
  /** `name`, `input` and `answer`, as far as they differ. */
  readonly values: readonly (readonly [what: string, value: ValueDiff])[];
}

/** The commands of a workflow or the nodes of a flow. */
export interface DiffList {
  readonly what: "commands" | "nodes";
  readonly firstDivergence: string | undefined;
  readonly rows: readonly Row[];
  readonly more: boolean;
}

export function listOf(diff: WorkflowDiff | FlowDiff, showsSecrets: boolean): DiffList {
  const visible = showsSecrets ? diff : redacted(diff);
  const { firstDivergence, more } = diff;
  if ("commands" in visible)
    return {
      what: "commands",
      firstDivergence,
      more,
      rows: visible.commands.map(({ command: key, in: where, ...values }) => rowOf(key, where, values)),
    };
  return {
    what: "nodes",
    firstDivergence,
    more,
    rows: visible.nodes.map(({ node: key, in: where, ...values }) => rowOf(key, where, values)),
  };
}

function rowOf(key: string, where: Row["in"], values: Readonly<Record<string, ValueDiff>>): Row {
  return { key, in: where, values: Object.entries(values) };
}

export function listJson({ what, firstDivergence, rows, more }: DiffList): object {
  const sides = (value: ValueDiff): object =>
    Object.fromEntries(Object.entries(value).map(([side, one]) => [side, jsonOf(one)]));
  return {
    same: firstDivergence === undefined,
    firstDivergence: firstDivergence ?? null,
    more,
    [what]: rows.map(({ key, in: where, values }) => ({
      [what === "commands" ? "command" : "node"]: key,
      in: where,
      ...Object.fromEntries(values.map(([name, value]) => [name, sides(value)])),
    })),
  };
}

const SIGN = { here: "-", there: "+" } as const;
const COLOR = { here: "red", there: "green" } as const;

export async function printList(
  { what, firstDivergence, rows, more }: DiffList,
  id: string,
  other: string,
): Promise<void> {
  if (firstDivergence === undefined)
    return print(`${paint("green", "same")} ${plain(id)} and ${plain(other)}: all ${what} are equal`);
  await print(`${paint("yellow", "differ")} from ${plain(firstDivergence)}`);
  await print(paint("dim", `  - ${plain(id)}\n  + ${plain(other)}`));
  const room = Math.max(40, lineWidth() - 6);
  for (const { key, in: where, values } of rows) {
    const only = where === "both" ? "" : paint("dim", `  only in ${plain(where === "here" ? id : other)}`);
    await print(`\n${paint("bold", plain(key))}${only}`);
    for (const [name, value] of values)
      for (const side of ["here", "there"] as const) {
        if (!(side in value)) continue;
        const text = textOf(name, value[side], room - name.length - 12);
        await print(paint(COLOR[side], `  ${SIGN[side]} ${text}`));
      }
  }
  if (more) await print(paint("dim", `… more ${what} differ; show them with a higher --limit`));
}

function textOf(name: string, value: unknown, room: number): string {
  if (name !== "answer") return `${name}: ${showValue(value, room)}`;
  const answer = value as StepAnswer;
  if (answer.status === "completed") return `completed: ${showValue(answer.value, room)}`;
  return answer.status === "failed" ? `failed: ${showValue(answer.error, room)}` : answer.status.replace("_", " ");
}
