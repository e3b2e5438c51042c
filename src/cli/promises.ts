// reprise promises: prints the promises that runs wait for, with the commands that resolve them.

import { formatMs } from "../base/index.ts";
import { listPromises, type OpenPromiseInfo } from "../engine/index.ts";
import type { Cost } from "../kernel/index.ts";
import { raiseCommand } from "./budget.ts";
import { EXIT } from "./exit-codes.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { withRedactedStore, type InspectOptions } from "./redacted-store.ts";
import { isoOf, jsonOf } from "./run-format.ts";
import { plain, showValue } from "./text.ts";

export interface PromisesOptions extends InspectOptions {
  readonly name?: string;
  readonly definition?: string;
  readonly limit: number;
}

export async function promises(options: PromisesOptions): Promise<number> {
  const { name, definition, limit } = options;
  const filter = { ...(name !== undefined && { name }), ...(definition !== undefined && { definition }) };
  return withRedactedStore(options, async (store) => {
    const now = store.now();
    let shown = 0;
    for await (const promise of listPromises(store, { ...filter, limit: limit + 1 })) {
      if (shown === limit) {
        if (!options.json) remark(`… more promises exist; show them with a --limit above ${limit}.`);
        break;
      }
      shown += 1;
      if (options.json) await printJson(promiseJson(promise));
      else await print(promiseLines(promise, now).join("\n"));
    }
    if (!options.json && shown === 0) remark("No run waits for a matching promise.");
    return EXIT.ok;
  });
}

function promiseJson({ runId, definition, kind, name, key, show, createdAt, deadline }: OpenPromiseInfo): object {
  return {
    runId,
    definition,
    kind,
    name,
    key: key ?? null,
    show: jsonOf(show),
    createdAt: isoOf(createdAt),
    deadline: isoOf(deadline),
  };
}

const SHOW_WIDTH = 60;

function promiseLines(promise: OpenPromiseInfo, now: number): string[] {
  const { runId, definition, name, key, show, createdAt, deadline } = promise;
  const id = key === undefined ? name : `${name}[${key}]`;
  const since = `waiting for ${formatMs(Math.max(0, now - createdAt.getTime()))}`;
  const limit = deadline === undefined ? "" : `, ${limitText(deadline.getTime() - now)}`;
  return [
    `${paint("bold", plain(id))} of ${plain(runId)} (${plain(definition)}): ${since}${limit}`,
    ...(show === undefined ? [] : [`  showing ${showValue(show, SHOW_WIDTH)}`]),
    `  ${paint("dim", "next:")} ${withStoreOption(resolveCommand(promise))}`,
  ];
}

function limitText(ms: number): string {
  return ms > 0
    ? `times out in ${formatMs(ms)}`
    : `timed out ${formatMs(-ms)} ago; a worker has not processed that yet`;
}

function resolveCommand({ runId, kind, name, key, show }: OpenPromiseInfo): string {
  if (kind === "budget") return raiseCommand(runId, (show as { readonly cap?: Cost } | undefined)?.cap ?? {});
  const withKey = key === undefined ? "" : ` --key ${shellWord(key)}`;
  return `reprise resolve ${shellWord(runId)} ${shellWord(name)} '<value as JSON>'${withKey}`;
}
