// Homes and folders that are gone after the test, and the logs that they take.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openHome, type Home, type HomeOptions } from "../../../src/federation/home/home.ts";

/** A folder that is gone after the test. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "reprise-home-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A home in a folder of its own, closed after the test. */
export function freshHome(options: HomeOptions = {}): Home {
  const home = openHome(freshFolder(), options);
  onTestFinished(() => home.close());
  return home;
}

/** Whether a text stands anywhere in the files of a home. */
export function isOnDisk(folder: string, text: string): boolean {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).some(
    (file) => file.isFile() && readFileSync(join(file.parentPath, file.name)).includes(text),
  );
}

export * from "./log-writer.ts";
