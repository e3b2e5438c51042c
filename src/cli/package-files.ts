// Package files: distinguishes the files of the reprise package from the user's files.

import { pathToFileURL } from "node:url";

const PACKAGE_URL = new URL("..", import.meta.url).href;

export function isPackageFile(path: string): boolean {
  return pathToFileURL(path).href.startsWith(PACKAGE_URL);
}
