// reprise key: prints the signing key of this project, and manages the keys that it trusts.

import type { GlobalOptions } from "./global-options.ts";
import { EXIT } from "./exit-codes.ts";
import type { HomeOptions } from "./home.ts";
import { findKey, getKey, trustedFile, trustedKeys, trustKey } from "./keys.ts";
import { paint, print, printJson } from "./output.ts";
import { plain } from "./text.ts";

export type KeyOptions = GlobalOptions & HomeOptions & { readonly name?: string };

/** Creates the key if the project has none. */
export async function showKey(options: KeyOptions): Promise<number> {
  const { key, vkey, from, isNew } = getKey(options, options.name);
  if (options.json)
    await printJson({
      origin: key.origin,
      vkey,
      ...(key.vkey !== vkey && { signsWith: key.vkey }),
      from,
      created: isNew,
    });
  else {
    await print(`${paint("dim", "origin")}  ${key.origin}`);
    await print(`${paint("dim", "vkey")}    ${vkey}`);
    // After a rotation: other sites know this one by its first vkey, and follow its log to the newest.
    if (key.vkey !== vkey) await print(`${paint("dim", "now")}     ${key.vkey}`);
    await print(`${paint("dim", isNew ? "created" : "from   ")} ${plain(from)}`);
    await print(paint("dim", "Give the vkey to those who verify your bundles. Keep the file secret, and keep a copy."));
  }
  return EXIT.ok;
}

export async function trust(vkey: string, options: KeyOptions): Promise<number> {
  const added = trustKey(options, vkey);
  const file = trustedFile(options);
  const origin = vkey.trim().split("+")[0]!;
  if (options.json) await printJson({ origin, added, file });
  else await print(`${added ? "trusted" : "already trusted"}: ${origin}, in ${plain(file)}`);
  return EXIT.ok;
}

export async function listKeys(options: KeyOptions): Promise<number> {
  const own = findKey(options);
  const keys = [
    ...(own === undefined ? [] : [{ key: own.key, trust: "own", from: own.from }]),
    ...trustedKeys(options).map(({ key }) => ({ key, trust: "trusted", from: trustedFile(options) })),
  ];
  for (const { key, trust: why, from } of keys)
    await (options.json
      ? printJson({ origin: key.origin, vkey: key.vkey, trust: why, from })
      : print(`${paint("dim", why.padEnd(7))}  ${key.vkey}`));
  if (keys.length === 0 && !options.json)
    await print("No keys. `reprise key` creates one, `reprise key trust <vkey>` accepts one of another signer.");
  return EXIT.ok;
}
