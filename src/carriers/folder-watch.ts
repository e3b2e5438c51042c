// Folder watch: notices that something in a folder changed. It only makes readers faster: on a share, or when the machine has no
// watches left, no event comes, so readers poll as well.

import { watch, type FSWatcher } from "node:fs";

export class FolderWatch implements Disposable {
  readonly #folder: string;
  #watcher: FSWatcher | undefined;
  #next = Promise.withResolvers<void>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Resolves with the next change after the last `begin`. */
  get changed(): Promise<void> {
    return this.#next.promise;
  }

  /** Call before each read: a change from now on resolves `changed`. Begins to watch a folder that did not exist before. */
  begin(): void {
    this.#next = Promise.withResolvers<void>();
    if (this.#watcher !== undefined) return;
    try {
      this.#watcher = watch(this.#folder, () => this.#next.resolve());
      this.#watcher.on("error", () => this[Symbol.dispose]());
    } catch {
      // It does not exist yet, or cannot be watched.
    }
  }

  [Symbol.dispose](): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}
