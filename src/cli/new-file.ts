// New file: a file that exists as a whole or not at all.
//
// new-file.N1. The content is written under a temporary name beside the file, private (0600), and synced. Then the file gets its name,
//   if no other file has it. A process that is killed leaves at most the temporary file.

import { existsSync, rmSync } from "node:fs";
import { link, open, rename, rm, type FileHandle } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { RepriseError, systemRandom } from "../base/index.ts";

export class NewFile {
  readonly path: string;
  readonly #option: string;
  readonly #temporary: string;
  #file: FileHandle | undefined;
  bytes = 0;

  /** `option`: the option that named the file, for messages. */
  constructor(path: string, option: string) {
    this.path = resolve(path);
    this.#option = option;
    this.#temporary = join(dirname(this.path), `.${basename(this.path)}.${systemRandom.token().slice(0, 12)}.tmp`);
    if (existsSync(this.path)) throw this.#refusal("it already exists. Name another file, or delete it");
  }

  async write(chunk: Uint8Array): Promise<void> {
    try {
      this.#file ??= await open(this.#temporary, "wx", 0o600);
      await this.#file.writeFile(chunk);
    } catch (error) {
      throw this.#refusal((error as Error).message, error);
    }
    this.bytes += chunk.length;
  }

  /** new-file.N1 */
  async commit(): Promise<void> {
    await this.write(new Uint8Array());
    try {
      await this.#file?.sync();
      await this.#file?.close();
      this.#file = undefined;
      await this.#giveName();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      throw this.#refusal(code === "EEXIST" ? "another process created it meanwhile" : message, error);
    } finally {
      await rm(this.#temporary, { force: true });
    }
  }

  /** A link fails where the name is taken; some file systems have no links. */
  async #giveName(): Promise<void> {
    try {
      await link(this.#temporary, this.path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EEXIST" || existsSync(this.path)) throw error;
      await rename(this.#temporary, this.path);
    }
  }

  /** Removes what was written, also while the process exits. */
  discard(): void {
    const file = this.#file;
    this.#file = undefined;
    rmSync(this.#temporary, { force: true });
    file?.close().catch(() => {});
  }

  #refusal(why: string, cause?: unknown): RepriseError {
    return new RepriseError("BAD_OPTIONS", `${this.#option}: ${this.path} cannot be written: ${why}.`, { cause });
  }
}
