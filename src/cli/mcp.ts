// reprise mcp: runs, definitions and documents for agents, over standard input and output (Model Context Protocol).
//
// mcp.M1. The store is opened when a tool first needs it: without one, the documents are served all the same. Nothing is created or
//   migrated, unless --code names code that can be started.
// mcp.M2. Standard output belongs to the protocol. Log lines, and what the code of the user prints, go to standard error.

import { RepriseError } from "../base/index.ts";
import { createClient, createEngine, type Client } from "../engine/index.ts";
import type { Logger } from "../kernel/index.ts";
import { serveMcp, type McpOptions } from "../server/index.ts";
import { doctorReport } from "./doctor.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions, loadEngineOptions, loadServerOptions } from "./load-definitions.ts";
import { openExisting, withStoreToRead } from "./open-store.ts";
import { payloadOptions } from "./payload-module.ts";
import { refuseMemoryStore } from "./worker.ts";

export interface McpCommandOptions extends GlobalOptions {
  /** `true`: everything. */
  readonly allow?: true | readonly string[];
  readonly code?: string;
  readonly worker?: boolean;
}

export async function mcp(options: McpCommandOptions): Promise<number> {
  if (options.worker === true && options.code === undefined)
    throw new RepriseError("USAGE", "mcp: --worker executes code, so it needs --code <file>. Pass both.");
  refuseMemoryStore(options.store);
  const output = reserveOutput();
  await using opened = new AsyncDisposableStack();
  const client = options.code === undefined ? undefined : opened.use(await openWithCode(options.code, options));
  const allow = options.allow === true ? "all" : (options.allow ?? []);
  await serveMcp(client ?? (async () => opened.use(await openWithoutCode(options, allow.length === 0))), {
    allow,
    output,
    logger: stderrLogger(),
    tools: [
      {
        name: "doctor",
        title: "Check the store",
        description:
          "Checks the integrity of the whole store and reports stuck work, stopped runs and dead workers, as `reprise doctor` does. Takes long on a large store.",
        call: () => withStoreToRead(options.store, (store) => doctorReport(store)),
      },
    ],
  });
  return EXIT.ok;
}

/** mcp.M1 */
async function openWithoutCode({ store }: GlobalOptions, readOnly: boolean): Promise<Client> {
  const opened = await openExisting(store, readOnly);
  return createClient({
    store: { "~open": () => Promise.resolve(opened) },
    definitions: [],
    logger: false,
    ...payloadOptions(),
  });
}

async function openWithCode(code: string, { store, worker }: McpCommandOptions): Promise<Client> {
  const shared = { store, definitions: await loadDefinitions(code), ...payloadOptions() };
  if (worker === true) return createEngine({ ...shared, logger: stderrLogger(), ...(await loadEngineOptions(code)) });
  const { webhooks } = await loadServerOptions(code);
  return createClient({ ...shared, logger: false, ...(webhooks && { webhooks }) });
}

/** mcp.M2. The output for messages; what else is written to it from now on goes to standard error. */
function reserveOutput(): NonNullable<McpOptions["output"]> {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return { write: (text, done) => write(text, done) };
}

/** mcp.M2 */
function stderrLogger(): Logger {
  const log =
    (level: string) =>
    (message: string): void =>
      void process.stderr.write(`reprise: ${level}: ${message}\n`);
  return { info: () => undefined, warn: log("warn"), error: log("error") };
}
