// Task handler: the requests of A2A over runs: a message starts a run or answers a promise; tasks are read, listed, followed and canceled.
//
// task-handler.H1. Every read and write is an operation of the server for the caller (extension.E1). A run without the tag `a2a`, or of a
//   definition that is no skill, is no task: it is not found.
// task-handler.H2. A message that starts a run has an id of its client, so a repeated message is the same run: the id of the run follows from
//   the caller, the context and the message.

import { hash } from "node:crypto";
import {
  TaskState,
  type CancelTaskRequest,
  type GetTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
} from "@a2a-js/sdk";
import {
  ExtendedAgentCardNotConfiguredError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import type { AgentCard } from "@a2a-js/sdk";
import type { OpenPromiseBody, RunDetail, RunSummary } from "../contract/index.ts";
import type { ExtensionCall } from "../server/index.ts";
import type { KnownSkill } from "./agent-card.ts";
import { answerOf, metadataText, valueOf } from "./message-value.ts";
import { refusalFor } from "./refusal.ts";
import { askedPromises, contextOf, contextTag, isFinal, isSettled, promiseId, taskOf, TASK_TAG } from "./run-task.ts";
import { StreamedValues } from "./streamed-values.ts";

const DEFAULT_PAGE = 50;
const MAX_PAGE = 100;

export class TaskHandler implements A2ARequestHandler {
  readonly #card: AgentCard;
  readonly #skills: readonly KnownSkill[];
  readonly #call: ExtensionCall;

  constructor(card: AgentCard, skills: readonly KnownSkill[], call: ExtensionCall) {
    this.#card = card;
    this.#skills = skills;
    this.#call = call;
  }

  getAgentCard(): Promise<AgentCard> {
    return Promise.resolve(this.#card);
  }

  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return Promise.reject(new ExtendedAgentCardNotConfiguredError());
  }

  // ── messages ──

  async sendMessage(request: SendMessageRequest): Promise<Task> {
    const id = await this.#take(request);
    if (request.configuration?.returnImmediately === true) return this.#read(id);
    for await (const task of this.#follow(id)) if (isSettled(task)) return task;
    // The client is gone, or the server closes.
    throw new UnsupportedOperationError("The request was ended before the task was. Ask for the task again.");
  }

  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    yield* this.#stream(await this.#take(request));
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    if (isFinal(await this.#read(id)))
      throw new UnsupportedOperationError("The task has ended, so there is nothing to follow. Ask for the task.");
    yield* this.#stream(id);
  }

  /** Does what the message says; the id of its task. */
  async #take({ message, configuration, metadata }: SendMessageRequest): Promise<string> {
    if (message === undefined || message.messageId === "")
      throw new RequestMalformedError("message: expected a message with a messageId.");
    if (configuration?.taskPushNotificationConfig !== undefined) throw new PushNotificationNotSupportedError();
    if (message.taskId !== "") return this.#answer(message, metadata);
    return this.#start(message, metadata);
  }

  /** task-handler.H2 */
  async #start(message: Message, metadata: SendMessageRequest["metadata"]): Promise<string> {
    const skill = this.#skillFor(message, metadata);
    const input = inputOf(skill, message);
    const { contextId, messageId } = message;
    const { name, tags = [] } = this.#call.caller ?? { name: "anonymous" };
    const id = `a2a-${hash("sha256", JSON.stringify([name, skill.id, contextId, messageId])).slice(0, 32)}`;
    const body = {
      ...(input !== undefined && { input }),
      id,
      // A caller that sees only some tags sees what it starts.
      tags: [TASK_TAG, contextTag(contextId === "" ? id : contextId), ...tags.slice(0, 1)],
    };
    await this.#operation("startRun", { params: { name: skill.id }, body });
    return id;
  }

  #skillFor(message: Message, metadata: SendMessageRequest["metadata"]): KnownSkill {
    const wanted = metadataText("skill", message.metadata, metadata);
    if (wanted === undefined && this.#skills.length === 1) return this.#skills[0]!;
    const skill = this.#skills.find(({ id }) => id === wanted);
    if (skill !== undefined) return skill;
    const ids = this.#skills.map(({ id }) => id).join(", ");
    throw new RequestMalformedError(
      wanted === undefined
        ? `metadata.skill: expected the id of a skill: ${ids}.`
        : `metadata.skill: there is no skill ${wanted.slice(0, 100)}. There are: ${ids}.`,
    );
  }

  async #answer(message: Message, metadata: SendMessageRequest["metadata"]): Promise<string> {
    const { taskId: id, contextId } = message;
    const { run, skill } = await this.#find(id);
    if (contextId !== "" && contextId !== contextOf(run))
      throw new RequestMalformedError("contextId: the task has another context.");
    const promise = promiseFor(askedPromises(run, skill), metadataText("promise", message.metadata, metadata));
    const { name: port, key } = promise;
    const value = answerOf(message, await this.#portSchema(run.definition, port));
    const operation = key === undefined ? "settlePromise" : "settleKeyedPromise";
    await this.#operation(operation, { params: { id, port, ...(key !== undefined && { key }) }, body: { value } });
    return id;
  }

  async #portSchema(definition: string, port: string): Promise<unknown> {
    const { ports } = (await this.#operation("getDefinition", { params: { name: definition } })) as {
      readonly ports: readonly { readonly name: string; readonly schema?: unknown }[];
    };
    return ports.find(({ name }) => name === port)?.schema;
  }

  // ── tasks ──

  async getTask({ id }: GetTaskRequest): Promise<Task> {
    return this.#read(id);
  }

  async listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    const { contextId, pageSize = DEFAULT_PAGE, pageToken } = request;
    const limit = Math.min(Math.max(1, pageSize), MAX_PAGE);
    const page = (await this.#operation("listRuns", {
      query: {
        tag: [TASK_TAG, ...(contextId === "" ? [] : [contextTag(contextId)])],
        limit,
        ...(pageToken !== "" && { after: pageToken }),
      },
    })) as { readonly items: readonly RunSummary[]; readonly next?: string };
    const found: Task[] = [];
    for (const { id, definition } of page.items) {
      if (!this.#skills.some((skill) => skill.id === definition)) continue;
      const task = await this.#read(id);
      if (isWanted(task, request)) found.push(task);
    }
    return { tasks: found, nextPageToken: page.next ?? "", pageSize: limit, totalSize: found.length };
  }

  async cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    const task = await this.#read(id);
    if (isFinal(task)) throw new TaskNotCancelableError();
    await this.#operation("cancelRun", { params: { id } });
    return this.#read(id);
  }

  /** task-handler.H1 */
  async #find(id: string): Promise<{ readonly run: RunDetail; readonly skill: KnownSkill }> {
    if (id === "") throw new RequestMalformedError("id: expected the id of a task.");
    const run = (await this.#operation("getRun", { params: { id } })) as RunDetail;
    const skill = this.#skills.find((one) => one.id === run.definition);
    if (skill === undefined || !run.tags.includes(TASK_TAG)) throw new TaskNotFoundError(`There is no task ${id}.`);
    return { run, skill };
  }

  async #read(id: string): Promise<Task> {
    const { run, skill } = await this.#find(id);
    if (run.status !== "completed") return taskOf(run, skill);
    // The result is exact, as for every program that asks for it (docs/decisions/0195).
    const { output } = (await this.#operation("getResult", { params: { id } })) as { readonly output?: unknown };
    return taskOf(run, skill, output);
  }

  // ── following ──

  /** The task now, and whenever it may have changed; ends with it. */
  async *#follow(id: string): AsyncGenerator<Task, void, undefined> {
    for await (const _changed of this.#call.changes(id)) {
      const task = await this.#read(id);
      yield task;
      if (isFinal(task)) return;
    }
  }

  /** A task first, then the values of its stream and its updates, until it has ended or needs input. */
  async *#stream(id: string): AsyncGenerator<StreamResponse, void, undefined> {
    let seen: string | undefined;
    let values: StreamedValues | undefined;
    for await (const task of this.#follow(id)) {
      const mark = JSON.stringify([task.status?.state, task.status?.message?.parts]);
      if (seen === undefined) {
        yield { payload: { $case: "task", value: task } };
        const { stream } = this.#skills.find((skill) => skill.id === task.metadata?.["skill"]) ?? {};
        if (stream !== undefined) values = new StreamedValues(this.#call, task, stream);
      }
      // After the task was read: what it has put into the stream before it ended comes before its end.
      if (values !== undefined) yield* this.#refusing(values.next());
      if (seen !== undefined && mark !== seen) yield* updatesOf(task);
      seen = mark;
      if (isSettled(task)) return;
    }
  }

  // ── push notifications ──

  createTaskPushNotificationConfig(): Promise<never> {
    return Promise.reject(new PushNotificationNotSupportedError());
  }
  getTaskPushNotificationConfig(): Promise<never> {
    return Promise.reject(new PushNotificationNotSupportedError());
  }
  listTaskPushNotificationConfigs(): Promise<never> {
    return Promise.reject(new PushNotificationNotSupportedError());
  }
  deleteTaskPushNotificationConfig(): Promise<never> {
    return Promise.reject(new PushNotificationNotSupportedError());
  }

  async #operation(...[operation, input]: Parameters<ExtensionCall["call"]>): Promise<unknown> {
    try {
      return await this.#call.call(operation, input);
    } catch (error) {
      throw refusalFor(error, (cause) => this.#call.report(cause));
    }
  }

  async *#refusing(events: AsyncGenerator<StreamResponse, void, undefined>): typeof events {
    try {
      yield* events;
    } catch (error) {
      throw refusalFor(error, (cause) => this.#call.report(cause));
    }
  }
}

function* updatesOf({ id, contextId, status, artifacts }: Task): Generator<StreamResponse, void, undefined> {
  for (const artifact of artifacts)
    yield {
      payload: {
        $case: "artifactUpdate",
        value: { taskId: id, contextId, artifact, append: false, lastChunk: true, metadata: undefined },
      },
    };
  yield { payload: { $case: "statusUpdate", value: { taskId: id, contextId, status, metadata: undefined } } };
}

function isWanted({ status: has }: Task, { status, statusTimestampAfter }: ListTasksRequest): boolean {
  if (status !== TaskState.TASK_STATE_UNSPECIFIED && has?.state !== status) return false;
  return statusTimestampAfter === undefined || Date.parse(has?.timestamp ?? "") > Date.parse(statusTimestampAfter);
}

/** The promise that a message answers: the one that it names, or the only one. */
function promiseFor(open: readonly OpenPromiseBody[], wanted: string | undefined): OpenPromiseBody {
  if (open.length === 0)
    throw new UnsupportedOperationError("The task waits for no message: it works, or it has ended.");
  const found =
    wanted === undefined ? (open.length === 1 ? open[0] : undefined) : open.find((one) => promiseId(one) === wanted);
  if (found !== undefined) return found;
  const ids = open.map(promiseId).join(", ");
  throw new RequestMalformedError(
    wanted === undefined
      ? `metadata.promise: the task waits for several promises; name one: ${ids}.`
      : `metadata.promise: the task does not wait for ${wanted.slice(0, 100)}. It waits for: ${ids}.`,
  );
}

function inputOf({ id, input }: KnownSkill, message: Message): unknown {
  if (input === undefined) return valueOf(message);
  try {
    return input(message);
  } catch (cause) {
    throw new RequestMalformedError({ message: `${id} does not take this message: ${String(cause)}`, cause });
  }
}
