// Message ports: which ports a run without code has, as far as its journal and its open promises tell.
//
// message-ports.M1. A message to a port that the run never named would stay in its inbox for ever. So without the code a name must be known from
//   the run: what it waits for, or has received (as in the command line).

import { RepriseError, shellWord } from "../../base/index.ts";
import { typedEntryOf } from "../../explain/index.ts";
import {
  hasEnded,
  journalEntryOf,
  promise,
  promiseNameOf,
  signal,
  update,
  type EntryType,
  type Ports,
  type RunRecord,
} from "../../kernel/index.ts";
import type { Run } from "../../engine/index.ts";
import type { ServerHost } from "../host.ts";
import { accessOf } from "./view.ts";

type MessageKind = "signal" | "promise" | "update";

const PORTS = {
  signal: () => signal<unknown>(),
  promise: () => promise<unknown>(),
  update: () => update<unknown, unknown>(),
} satisfies Record<MessageKind, () => Ports[string]>;

/** The handle of a run for a message to one of its ports. */
export async function handleFor(
  host: ServerHost,
  record: RunRecord,
  kind: MessageKind,
  name: string,
): Promise<Run<any>> {
  const access = accessOf(host);
  if (access.registry.findWorkflow(record.definition) !== undefined) return access.handle(record);
  if (!hasEnded(record.status)) await checkName(host, record, kind, name);
  return access.handle(record, { [name]: PORTS[kind]() });
}

const NAMING: ReadonlySet<EntryType> = new Set<EntryType>(["PromiseCreated", "SignalReceived", "UpdateRequested"]);
const PAGE = 1_000;

/** message-ports.M1 */
async function checkName(
  { store }: ServerHost,
  { run, id, head }: RunRecord,
  kind: MessageKind,
  name: string,
): Promise<void> {
  const known = new Set<string>();
  for (let seq = 0; seq < head;) {
    const page = await store.readJournal(run, seq, PAGE);
    for (const entry of page)
      if (NAMING.has(entry.type)) for (const one of namesIn(typedEntryOf(journalEntryOf(entry)), kind)) known.add(one);
    if (known.has(name)) return;
    if (page.length === 0) break;
    seq = page.at(-1)!.seq;
  }
  const names = known.size === 0 ? "" : ` It has: ${[...known].join(", ")}.`;
  throw new RepriseError(
    "UNKNOWN_PORT",
    `Run ${id} has no ${kind} \`${name}\` in its journal, and this server does not have its code to check the name.${names} See \`reprise show ${shellWord(id)}\`.`,
    { details: { run: id, name, known: [...known] } },
  );
}

function namesIn(entry: ReturnType<typeof typedEntryOf>, kind: MessageKind): readonly string[] {
  if (entry.type === "PromiseCreated") {
    const { promiseId, key, receives } = entry.data;
    if (kind === "signal") return receives ?? [];
    if (kind !== "promise" || receives !== undefined || promiseId === undefined) return [];
    return [promiseNameOf({ promiseId, ...(key !== undefined && { key }) })];
  }
  if (entry.type === "SignalReceived" && kind === "signal")
    return entry.data.name === undefined ? [] : [entry.data.name];
  if (entry.type === "UpdateRequested" && kind === "update")
    return entry.data.name === undefined ? [] : [entry.data.name];
  return [];
}
