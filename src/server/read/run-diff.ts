// Run diff: how two runs differ, in one form for graphs, workflows and flows.

import type { DiffBody } from "../../contract/index.ts";
import type { ChannelDiff, FlowDiff, RunDiff, StepAnswer, ValueDiff, WorkflowDiff } from "../../engine/index.ts";
import { shownPayload, type View } from "./view.ts";

export function diffBodyOf(here: string, there: string, diff: RunDiff | WorkflowDiff | FlowDiff, view: View): DiffBody {
  const { firstDivergence, more } = diff;
  return {
    here,
    there,
    ...(firstDivergence !== undefined && { firstDivergence: String(firstDivergence) }),
    items: itemsOf(diff, view),
    more,
  };
}

type Value = DiffBody["items"][number]["values"][number];

function itemsOf(diff: RunDiff | WorkflowDiff | FlowDiff, view: View): DiffBody["items"] {
  const value = (name: string, both: ValueDiff | ChannelDiff | undefined): readonly Value[] =>
    both === undefined
      ? []
      : [
          {
            name,
            ...("here" in both && { here: shownPayload(view, both.here) }),
            ...("there" in both && { there: shownPayload(view, both.there) }),
          },
        ];
  if ("steps" in diff)
    return diff.steps.map(({ step, in: where, channels, next }) => ({
      at: String(step),
      in: where,
      values: [...Object.entries(channels).flatMap(([name, both]) => value(name, both)), ...value("next", next)],
    }));
  const answer = (both: ValueDiff<StepAnswer> | undefined): ValueDiff | undefined =>
    both && {
      ...(both.here && { here: answerValue(both.here) }),
      ...(both.there && { there: answerValue(both.there) }),
    };
  if ("commands" in diff)
    return diff.commands.map(({ command, in: where, name, input, answer: both }) => ({
      at: command,
      in: where,
      values: [...value("name", name), ...value("input", input), ...value("answer", answer(both))],
    }));
  return diff.nodes.map(({ node, in: where, answer: both }) => ({
    at: node,
    in: where,
    values: value("answer", answer(both)),
  }));
}

function answerValue(answer: StepAnswer): unknown {
  if (answer.status === "completed") return answer.value;
  return answer.status === "failed" ? { status: "failed", error: answer.error } : { status: answer.status };
}
