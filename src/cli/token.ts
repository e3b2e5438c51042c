// reprise token: the tokens of the HTTP API, in a file that servers read. A running server sees the change with its next request.

import { toMs, type Duration } from "../base/index.ts";
import { ROLES, type Role } from "../contract/index.ts";
import { addToken, listTokens as readTokens, revokeToken as revoke, type TokenSettings } from "../server/index.ts";
import { CommandError } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { createHomeFolder } from "../federation/index.ts";
import { homeOf, tokenFileOf } from "./home.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { Table } from "./table.ts";
import { plain } from "./text.ts";

export interface TokenFileOptions extends GlobalOptions {
  /** Default: `tokens.json` in the home folder. */
  readonly file?: string;
}

export interface TokenCreateOptions extends TokenFileOptions {
  readonly role: string;
  readonly definitions?: readonly string[];
  readonly tags?: readonly string[];
  readonly queues?: readonly string[];
  readonly expires?: string;
}

function fileOf({ file, ...options }: TokenFileOptions): string {
  return tokenFileOf({ ...options, ...(file !== undefined && { tokens: file }) });
}

export async function createToken(name: string, options: TokenCreateOptions): Promise<number> {
  const { role, definitions, tags, queues, expires } = options;
  if (!ROLES.includes(role as Role))
    throw new CommandError(
      "USAGE",
      `token create: there is no role ${plain(role)}. Roles are ${ROLES.join(", ")}, each with the rights of those before it.`,
      `reprise token create ${name} --role operator`,
    );
  if (expires !== undefined) toMs(expires as Duration, "--expires");
  if (options.file === undefined) createHomeFolder(homeOf(options));
  const file = fileOf(options);
  const { token, settings } = addToken(file, {
    name,
    role: role as Role,
    ...(definitions !== undefined && { definitions }),
    ...(tags !== undefined && { tags }),
    ...(queues !== undefined && { queues }),
    ...(expires !== undefined && { expires: expires as Duration }),
  });
  if (options.json) {
    await printJson({ token, ...shown(settings), file });
    return EXIT.ok;
  }
  // The token alone on standard output: `reprise token create ci --role operator > secret`.
  await print(token);
  remark(`${plain(name)} has the role ${role}. This is the only time the token is shown; ${file} has its hash.`);
  return EXIT.ok;
}

export async function listTokens(options: TokenFileOptions): Promise<number> {
  const tokens = readTokens(fileOf(options));
  if (options.json) {
    for (const one of tokens) await printJson(shown(one));
    return EXIT.ok;
  }
  if (tokens.length === 0) {
    await print("No tokens. `reprise token create <name> --role <role>` makes one.");
    return EXIT.ok;
  }
  const table = new Table([
    { title: "NAME" },
    { title: "ROLE" },
    { title: "SCOPE", minWidth: 12 },
    { title: "EXPIRES", dropOrder: 2 },
    { title: "TOKEN", dropOrder: 1 },
  ]);
  const rows = tokens.map((one) => [
    one.name,
    one.role,
    scopeOf(one),
    one.expiresAt === undefined ? "never" : one.expiresAt.slice(0, 16).replace("T", " "),
    one.id === undefined ? "" : `rp_${one.id}_…`,
  ]);
  for (const line of table.render(rows)) await print(line);
  return EXIT.ok;
}

export async function revokeToken(name: string, options: TokenFileOptions): Promise<number> {
  const file = fileOf(options);
  if (!revoke(file, name)) {
    const names = readTokens(file).map((one) => one.name);
    const known = names.length === 0 ? "It has no tokens." : `Its tokens are ${names.join(", ")}.`;
    throw new CommandError("USAGE", `There is no token ${plain(name)} in ${file}. ${known}`, "reprise token list");
  }
  if (options.json) await printJson({ name, revoked: true });
  else await print(`${paint("green", "revoked")} ${plain(name)}; servers refuse it from the next request on`);
  return EXIT.ok;
}

/** Without the hash: a list is shown and logged. */
function shown({ name, role, definitions, tags, queues, createdAt, expiresAt, id }: TokenSettings): object {
  return {
    name,
    role,
    definitions: definitions ?? null,
    tags: tags ?? null,
    queues: queues ?? null,
    createdAt: createdAt ?? null,
    expiresAt: expiresAt ?? null,
    id: id ?? null,
  };
}

function scopeOf({ definitions, tags, queues }: TokenSettings): string {
  const parts = [
    definitions === undefined ? "" : `definitions ${definitions.join(", ")}`,
    tags === undefined ? "" : `tags ${tags.join(", ")}`,
    queues === undefined ? "" : `queues ${queues.join(", ")}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "all" : parts.join("; ");
}
