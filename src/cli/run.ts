// reprise run: starts a run, works on it and waits for its end.

import { formatMs, RepriseError, type Duration } from "../base/index.ts";
import { shownUrl, storeOf } from "../stores/index.ts";
import { createEngine, type StartOptions } from "../engine/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { checkWorkflow, loadDefinitions, loadEngineOptions, type Loaded } from "./load-definitions.ts";
import { EXIT } from "./exit-codes.ts";
import { paintError, print, printJson, remark, valueText } from "./output.ts";
import { payloadOptions } from "./payload-module.ts";
import { readInput } from "./read-input.ts";
import { onInterrupt } from "./signals.ts";
import { isoOf, jsonOf } from "./shown-run.ts";
import { countOf, plain } from "./text.ts";
import { refuseMemory } from "./worker.ts";

export interface RunOptions extends GlobalOptions {
  readonly id?: string;
  readonly inputFile?: string;
  readonly tag?: readonly string[];
  readonly priority?: number;
  readonly delay?: Duration;
  readonly deadline?: Duration;
  readonly detach?: boolean;
}

/** A run that waits for somebody says so after this long. */
const PATIENCE = "2 s";

export async function run(
  file: string,
  name: string,
  inputText: string | undefined,
  options: RunOptions,
): Promise<number> {
  storeOf(options.store);
  const input = await readInput(inputText, options.inputFile);
  const definitions = await loadDefinitions(file);
  checkWorkflow(definitions, name, file);
  if (options.detach === true) return detach(definitions, name, input, options);
  const engine = await createEngine({
    store: options.store,
    definitions,
    // One person, one machine: nobody else is there to take what has a label.
    worker: { labels: "any" },
    ...payloadOptions(),
    ...(await loadEngineOptions(file)),
  });
  // What is at work may finish; the run goes on where it stopped when it is started again.
  onInterrupt({ cleanUp: () => engine.close() });
  try {
    const handle = await engine.start(name, input as undefined, startOptionsOf(options));
    remark(paintError("dim", `run ${plain(handle.id)}`));
    const output: unknown = await waitFor(handle, options);
    const info = await handle.info();
    const took = formatMs((info.endedAt?.getTime() ?? 0) - info.createdAt.getTime());
    if (options.json)
      await printJson({
        id: info.id,
        status: info.status,
        output: jsonOf(output),
        entries: info.entries,
        digest: info.digest,
        createdAt: isoOf(info.createdAt),
        endedAt: isoOf(info.endedAt),
      });
    else if (output !== undefined) await print(valueText(output));
    if (!options.json)
      remark(paintError("dim", `${info.status} in ${took}, ${countOf(info.entries, "entry", "entries")}`));
    return EXIT.ok;
  } finally {
    await engine.close();
  }
}

/** Starts the run and leaves the work to workers. */
async function detach(definitions: Loaded, name: string, input: unknown, options: RunOptions): Promise<number> {
  refuseMemory(options.store);
  await using engine = await createEngine({ store: options.store, definitions, worker: false, ...payloadOptions() });
  const handle = await engine.start(name, input as undefined, startOptionsOf(options));
  const { id, status } = await handle.info();
  if (options.json) await printJson({ id, status });
  else await print(plain(id));
  return EXIT.ok;
}

function startOptionsOf({ id, tag, priority, delay, deadline }: RunOptions): StartOptions {
  return {
    ...(id !== undefined && { id }),
    ...(tag && { tags: tag }),
    ...(priority !== undefined && { priority }),
    ...(delay !== undefined && { delay }),
    ...(deadline !== undefined && { deadline }),
  };
}

interface Waiting {
  readonly id: string;
  result(options?: { timeout?: typeof PATIENCE }): Promise<unknown>;
}

async function waitFor(handle: Waiting, options: RunOptions): Promise<unknown> {
  try {
    return await handle.result({ timeout: PATIENCE });
  } catch (error) {
    if (!(error instanceof RepriseError && error.code === "RESULT_TIMEOUT")) throw error;
  }
  remark(
    paintError(
      "dim",
      `still going on; \`reprise show ${plain(handle.id)} --store ${plain(shownUrl(options.store))}\` says what it waits for`,
    ),
  );
  return handle.result();
}
