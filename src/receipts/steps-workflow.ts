// Workflow steps: the records of a workflow's run, by the index of the command; what has no index comes last.

import { isCancel } from "../kernel/index.ts";
import type { PlainEntry } from "./journal-tree.ts";
import { CommandSteps, PromiseSettlements } from "./command-steps.ts";
import type { MemberTexts } from "./member-texts.ts";
import { MessageSteps } from "./message-steps.ts";
import { type EmitStep, type MemberKeys, type StepReader } from "./steps.ts";

export class WorkflowSteps implements StepReader {
  readonly #promises = new PromiseSettlements();
  readonly #commands: CommandSteps;
  readonly #messages: MessageSteps;

  constructor(keys: MemberKeys, emit: EmitStep) {
    this.#commands = new CommandSteps(keys, this.#promises, (record, index) => emit(record, [index, 0, 0]));
    this.#messages = new MessageSteps(keys, emit);
  }

  add(entry: PlainEntry, members: MemberTexts): boolean {
    const { type } = entry;
    if (isCancel(type)) this.#promises.cancel();
    if (type === "PromiseResolved" || type === "PromiseRejected") return this.#promises.settleWith(type, members);
    return this.#commands.add(entry, members) || this.#messages.add(entry, members);
  }

  finish(): void {
    this.#commands.finish();
    this.#messages.finish();
  }
}
