// Which files are reprise itself, as it was installed, and not the user's.

import { pathToFileURL } from "node:url";

const OWN_FILES = new URL("..", import.meta.url).href;

export function isOwnFile(path: string): boolean {
  return pathToFileURL(path).href.startsWith(OWN_FILES);
}

/** A line of a stack that says how the engine called, which helps nobody. */
export function isOwnFrame(frame: string): boolean {
  return frame.includes(OWN_FILES);
}
