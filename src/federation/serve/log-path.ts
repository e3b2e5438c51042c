// Log path: the paths of the files of a log, as the server reads them from a URL.

/** `<name>/<16 hex>[/<epoch>]` as a group of a path. */
export const ORIGIN = "(?<origin>[A-Za-z0-9._-]{1,100}/[0-9a-f]{16}(?:/[1-9][0-9]{0,8})?)";

/** Groups of three digits, all but the last with an `x`; at most 15 digits, which a number holds exactly. */
const NUMBER = "(?<n>(?:x[0-9]{3}/){0,4}[0-9]{3})";
const WIDTH = "(?:\\.p/(?<width>[1-9][0-9]{0,2}))?";

/** A path of the server; `path` is a pattern. */
export function pathOf(path: string): RegExp {
  return new RegExp(`^/${path}$`);
}

export const CHECKPOINT = pathOf(`${ORIGIN}/(?<path>checkpoint)`);
export const HASH_TILE = pathOf(`${ORIGIN}/(?<path>tile/(?<level>0|[1-5]?[0-9]|6[0-3])/${NUMBER}${WIDTH})`);
export const ENTRY_TILE = pathOf(`${ORIGIN}/(?<path>tile/entries/${NUMBER}${WIDTH})`);
export const PACK = pathOf(`${ORIGIN}/(?<path>pack/${NUMBER}${WIDTH})`);
export const HANDOVER = pathOf(`${ORIGIN}/(?<path>key/${NUMBER})`);
export const FILLED = pathOf(`${ORIGIN}/(?<path>filled)`);
export const ARTIFACT = pathOf(`${ORIGIN}/(?<path>artifact/(?<digits>[0-9a-f]{2})/(?<key>\\k<digits>[0-9a-f]{62}))`);
export const JOURNAL = pathOf(`${ORIGIN}/(?<path>journal/(?<digits>[0-9a-f]{2})/(?<key>\\k<digits>[0-9a-f]{62}))`);

/** `x001/067` is 1067. Undefined: not the one text of its number. */
export function findNumber(text: string): number | undefined {
  const n = Number(text.replaceAll(/[x/]/g, ""));
  const isPadded = text.startsWith("x000");
  return isPadded ? undefined : n;
}

/** The width of a tile: 256 if the path names none. Undefined: a partial tile has 1 to 255. */
export function findWidth(text: string | undefined): number | undefined {
  if (text === undefined) return 256;
  const width = Number(text);
  return width < 256 ? width : undefined;
}
