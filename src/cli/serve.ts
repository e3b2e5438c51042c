// reprise serve: answers other sites, and exchanges records with peers until it is stopped.

import { RepriseError } from "../base/index.ts";
import type { ServeOptions } from "../federation/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withFederation } from "./open-federation.ts";
import { paint, print, printJson } from "./output.ts";
import { onInterrupt } from "./signals.ts";

export interface ServeCommandOptions extends GlobalOptions {
  readonly port: number;
  readonly host: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly insecure?: boolean;
  /** Module with the tasks that this site offers or executes. */
  readonly code?: string;
  readonly sync: boolean;
}

export async function serve(options: ServeCommandOptions): Promise<number> {
  const { port, host, insecure = false } = options;
  const tls = tlsOf(options);
  const definitions =
    options.code === undefined ? [] : await (await import("./load-definitions.ts")).loadDefinitions(options.code);
  return withFederation(
    options,
    { store: "optional", sync: options.sync ? "continuous" : "manual", definitions },
    async (site): Promise<number> => {
      const server = await site.serve({ port, host, insecure, ...(tls && { tls }) });
      if (options.json) await printJson({ url: server.url, origin: site.origin ?? null, vkey: site.vkey ?? null });
      else {
        await print(`${paint("green", "serving")} ${server.url}`);
        if (site.vkey !== undefined) await print(`${paint("dim", "vkey")}    ${site.vkey}`);
      }
      return new Promise<number>(() => {
        onInterrupt({
          isService: true,
          announce: () => {},
          cleanUp: async () => {
            await server.close();
            await site.close();
          },
        });
      });
    },
  );
}

function tlsOf({ tlsCert, tlsKey }: ServeCommandOptions): ServeOptions["tls"] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined)
    throw new RepriseError("USAGE", "serve: --tls-cert and --tls-key belong together. Pass both, or neither.");
  return { cert: tlsCert, key: tlsKey };
}
