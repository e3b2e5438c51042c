// Streamed values: the values that a run puts into a stream, as updates of artifacts.
//
// streamed-values.S1. Values of one step are one artifact, `<stream>/<step>`: each is appended to the ones before. When a step is executed
//   again, the stream voids its values; the next one then replaces the artifact.

import type { StreamResponse, Task } from "@a2a-js/sdk";
import type { ExtensionCall } from "../server/index.ts";
import { valuePart } from "./message-value.ts";

export class StreamedValues {
  readonly #call: ExtensionCall;
  readonly #task: Pick<Task, "contextId" | "id">;
  readonly #stream: string;
  /** Artifacts to which values are appended. */
  readonly #begun = new Set<string>();
  #offset = 0;

  constructor(call: ExtensionCall, task: Pick<Task, "contextId" | "id">, stream: string) {
    this.#call = call;
    this.#task = task;
    this.#stream = stream;
  }

  /** Updates for the values that have come since the last call. */
  async *next(): AsyncGenerator<StreamResponse, void, undefined> {
    const { id: taskId, contextId } = this.#task;
    for (;;) {
      const { frames, next, more } = await this.#call.stream(taskId, this.#stream, this.#offset);
      this.#offset = next;
      for (const { step, reset, value } of frames) {
        const artifactId = step === "" ? this.#stream : `${this.#stream}/${step}`;
        // streamed-values.S1
        if (reset) this.#begun.delete(artifactId);
        if (reset) continue;
        const append = this.#begun.has(artifactId);
        this.#begun.add(artifactId);
        const artifact = {
          artifactId,
          name: this.#stream,
          description: "",
          parts: [valuePart(value)],
          metadata: undefined,
          extensions: [],
        };
        const update = { taskId, contextId, artifact, append, lastChunk: false, metadata: undefined };
        yield { payload: { $case: "artifactUpdate", value: update } };
      }
      if (!more) return;
    }
  }
}
