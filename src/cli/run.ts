// reprise run: starts a run, executes it and waits for its result.

import { formatMs, RepriseError, type Duration } from "../base/index.ts";
import { storeOf } from "../stores/index.ts";
import { createClient, createEngine, type StartOptions } from "../engine/index.ts";
import { parseBudget } from "./budget.ts";
import { CommandError } from "./command-error.ts";
import type { GlobalOptions } from "./global-options.ts";
import { checkWorkflow, loadDefinitions, loadEngineOptions, type Loaded } from "./load-definitions.ts";
import { EXIT } from "./exit-codes.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paintError, print, printJson, remark, valueText } from "./output.ts";
import { payloadOptions } from "./payload-module.ts";
import { readInput } from "./read-input.ts";
import { onInterrupt } from "./signals.ts";
import { isoOf, jsonOf } from "./run-format.ts";
import { pluralize, plain } from "./text.ts";
import { refuseMemoryStore } from "./worker.ts";

export interface RunOptions extends GlobalOptions {
  readonly id?: string;
  readonly inputFile?: string;
  readonly tag?: readonly string[];
  readonly priority?: number;
  readonly delay?: Duration;
  readonly deadline?: Duration;
  readonly budget?: string;
  readonly detach?: boolean;
}

/** After this time without a result, a hint is printed. */
const HINT_AFTER = "2 s";

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
    // The run must not depend on other workers for work with a label.
    worker: { labels: "any" },
    ...payloadOptions(),
    ...(await loadEngineOptions(file)),
  });
  // Running steps finish. Starting the same run again continues it.
  onInterrupt({ cleanUp: () => engine.close() });
  try {
    const handle = await engine.start(name, input as undefined, startOptionsOf(options));
    remark(paintError("dim", `run ${plain(handle.id)}`));
    const output: unknown = await awaitResult(handle).catch((error: unknown) => {
      throw withNextCommand(error, handle.id);
    });
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
      remark(paintError("dim", `${info.status} in ${took}, ${pluralize(info.entries, "entry", "entries")}`));
    return EXIT.ok;
  } finally {
    await engine.close();
  }
}

/** Starts the run and leaves it to workers. */
async function detach(definitions: Loaded, name: string, input: unknown, options: RunOptions): Promise<number> {
  refuseMemoryStore(options.store);
  await using engine = await createClient({ store: options.store, definitions, ...payloadOptions() });
  const handle = await engine.start(name, input as undefined, startOptionsOf(options));
  const { id, status } = await handle.info();
  if (options.json) await printJson({ id, status });
  else await print(plain(id));
  return EXIT.ok;
}

function startOptionsOf({ id, tag, priority, delay, deadline, budget }: RunOptions): StartOptions {
  return {
    ...(id !== undefined && { id }),
    ...(tag && { tags: tag }),
    ...(priority !== undefined && { priority }),
    ...(delay !== undefined && { delay }),
    ...(deadline !== undefined && { deadline }),
    ...(budget !== undefined && { budget: parseBudget(budget) }),
  };
}

interface ResultHandle {
  readonly id: string;
  result(options?: { timeout?: typeof HINT_AFTER }): Promise<unknown>;
}

/** `reprise show` explains a failed run better than its message. */
function withNextCommand(error: unknown, id: string): unknown {
  if (!(error instanceof RepriseError) || error.code !== "RUN_FAILED") return error;
  const { cause, details, message } = error;
  return new CommandError("RUN_FAILED", message, `reprise show ${shellWord(id)}`, {
    cause,
    ...(details && { details }),
  });
}

async function awaitResult(handle: ResultHandle): Promise<unknown> {
  try {
    return await handle.result({ timeout: HINT_AFTER });
  } catch (error) {
    if (!(error instanceof RepriseError && error.code === "RESULT_TIMEOUT")) throw error;
  }
  const hint = `still running; see what it waits for: reprise show ${shellWord(handle.id)}`;
  remark(paintError("dim", withStoreOption(hint)));
  return handle.result();
}
