// Run task: a run as a task of A2A.
//
// run-task.T1. The id of a task is the id of its run, and its state is read from the run. Tasks are the runs with the tag `a2a`, which every
//   run that a message started has; the tag `context:<id>` is their context.
// run-task.T2. Open promises that clients may answer make the task INPUT_REQUIRED; its message names each of them.
// run-task.T3. A run that the engine has stopped is FAILED, with the command that helps.

import { Role, TaskState, type Message, type Task } from "@a2a-js/sdk";
import type { OpenPromiseBody, RunDetail } from "../contract/index.ts";
import { hasEnded } from "../kernel/index.ts";
import type { KnownSkill } from "./agent-card.ts";
import { dataPart, textPart, valuePart } from "./message-value.ts";

export const TASK_TAG = "a2a";
const CONTEXT = "context:";

export function contextTag(contextId: string): string {
  return `${CONTEXT}${contextId}`;
}

export function contextOf({ id, tags }: Pick<RunDetail, "id" | "tags">): string {
  return tags.find((tag) => tag.startsWith(CONTEXT))?.slice(CONTEXT.length) ?? id;
}

/** The promises of a run that a client may answer. A request for a budget is left out: an operator raises it, or declines. */
export function askedPromises({ openPromises }: RunDetail, { promises }: KnownSkill): readonly OpenPromiseBody[] {
  return openPromises.filter(
    (one) => one.kind === "promise" && (promises === undefined || promises.includes(one.name)),
  );
}

export function promiseId({ name, key }: Pick<OpenPromiseBody, "name" | "key">): string {
  return key === undefined ? name : `${name}/${key}`;
}

/** run-task.T1. `output`: of a run that completed. */
export function taskOf(run: RunDetail, skill: KnownSkill, output: unknown = null): Task {
  const [state, message] = stateOf(run, skill);
  const contextId = contextOf(run);
  return {
    id: run.id,
    contextId,
    status: {
      state,
      message: message === undefined ? undefined : agentMessage(run.id, contextId, `${run.entries}`, message),
      timestamp: run.endedAt ?? run.createdAt,
    },
    artifacts:
      state === TaskState.TASK_STATE_COMPLETED
        ? [
            {
              artifactId: "output",
              name: "output",
              description: "",
              parts: [valuePart(output)],
              metadata: undefined,
              extensions: [],
            },
          ]
        : [],
    history: [],
    metadata: { skill: skill.id, status: run.status },
  };
}

function stateOf(run: RunDetail, skill: KnownSkill): readonly [TaskState, (Message["parts"] | undefined)?] {
  const { status, error, waitsFor } = run;
  if (status === "completed") return [TaskState.TASK_STATE_COMPLETED];
  if (status === "cancelled") return [TaskState.TASK_STATE_CANCELED];
  if (hasEnded(status))
    return [
      TaskState.TASK_STATE_FAILED,
      [textPart(error === undefined ? "The run failed." : `${error.name}: ${error.message}`)],
    ];
  // run-task.T3
  if (status === "blocked" || status === "determinism_violation") {
    const { text = `The run is ${status}.`, next = [] } = waitsFor[0] ?? {};
    return [TaskState.TASK_STATE_FAILED, [textPart([text, ...next.slice(0, 1)].join(" Next: "))]];
  }
  const asked = status === "paused" ? [] : askedPromises(run, skill);
  if (asked.length > 0)
    return [
      TaskState.TASK_STATE_INPUT_REQUIRED,
      [
        textPart(`Waits for ${asked.map(promiseId).join(", ")}.`),
        dataPart({
          promises: asked.map((one) => ({
            promise: promiseId(one),
            ...(one.show !== undefined && { show: one.show }),
            ...(one.deadline !== undefined && { deadline: one.deadline }),
          })),
        }),
      ],
    ];
  if (status === "queued" || status === "expected") return [TaskState.TASK_STATE_SUBMITTED];
  const [reason] = waitsFor;
  return [TaskState.TASK_STATE_WORKING, reason === undefined ? undefined : [textPart(reason.text)]];
}

function agentMessage(taskId: string, contextId: string, version: string, parts: Message["parts"]): Message {
  return {
    messageId: `${taskId}/${version}`,
    contextId,
    taskId,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

const FINAL: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);

/** No further event follows by itself. */
export function isFinal({ status }: Task): boolean {
  return status !== undefined && FINAL.has(status.state);
}

/** The client has to act, or need not wait any longer. */
export function isSettled(task: Task): boolean {
  return isFinal(task) || task.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED;
}
