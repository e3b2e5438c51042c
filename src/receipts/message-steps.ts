// Message steps: the records of what came from outside the code, or has no index: signals, updates, patches, cancels.
//
// message-steps.M1. They are numbered by their order in the journal: the ids of updates are random.

import type { PlainEntry } from "./journal-tree.ts";
import type { MemberTexts } from "./member-texts.ts";
import { lastPlace, stringIn, type EmitStep, type MemberKeys, type StepPlace, type StepRecord } from "./steps.ts";

interface OpenUpdate {
  readonly record: StepRecord;
  readonly place: StepPlace;
}

export class MessageSteps {
  readonly #keys: MemberKeys;
  readonly #emit: EmitStep;
  /** By command as recorded. */
  readonly #updates = new Map<string, OpenUpdate>();
  #ordinal = 0;
  #signalCount = 0;
  #updateCount = 0;

  constructor(keys: MemberKeys, emit: EmitStep) {
    this.#keys = keys;
    this.#emit = emit;
  }

  /** The place after all records so far. */
  nextPlace(): StepPlace {
    return lastPlace(this.#ordinal++);
  }

  /** False: not one of these entries. */
  add({ type, command: raw }: Pick<PlainEntry, "type" | "command">, members: MemberTexts): boolean {
    switch (type) {
      case "SignalReceived": {
        const command = `Signal(${this.#signalCount++})`;
        const out = this.#keys.of(members, "value", command, "out");
        this.#emit({ command, kind: "signal", name: stringIn(members, "name"), out }, this.nextPlace());
        return true;
      }
      case "UpdateRequested": {
        const command = `Update(${this.#updateCount++})`;
        const record: StepRecord = {
          command,
          kind: "update",
          name: stringIn(members, "name"),
          in: this.#keys.of(members, "args", command, "in"),
        };
        this.#updates.set(raw, { record, place: this.nextPlace() });
        return true;
      }
      case "UpdateCompleted":
      case "UpdateFailed": {
        const open = this.#updates.get(raw);
        if (open === undefined) return true;
        this.#updates.delete(raw);
        const { record, place } = open;
        const out = this.#keys.of(members, "result", record.command, "out");
        const error = this.#keys.of(members, "error", record.command, "error");
        this.#emit({ ...record, out, error }, place);
        return true;
      }
      case "PatchMarked":
        this.#emit({ command: "Patch", kind: "patch", name: stringIn(members, "id") }, this.nextPlace());
        return true;
      case "CancelRequested":
      case "DeadlineExceeded": {
        const name = type === "CancelRequested" ? "cancel" : "deadline";
        this.#emit({ command: "Cancel", kind: "cancel", name }, this.nextPlace());
        return true;
      }
      default:
        return false;
    }
  }

  finish(): void {
    for (const { record, place } of this.#updates.values()) this.#emit(record, place);
    this.#updates.clear();
  }
}
