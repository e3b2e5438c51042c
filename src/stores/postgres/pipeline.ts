// Pipeline: several statements in one round trip, as one query of the driver.
//
// pipeline.P1. One Sync, at the end: the server skips everything after the first error (wire.ts).
// pipeline.P2. A statement counts as prepared once the server has confirmed it, also when a later one failed.

import type { Client, Connection, Submittable } from "pg";
import type { Bound, WireWriter } from "./wire.ts";

export interface Result {
  /** Values as text, in the order of the columns. */
  readonly rows: readonly (readonly (string | null)[])[];
  /** "UPDATE 3", "COMMIT". */
  readonly tag: string;
}

/** The names of the statements prepared on one connection. */
export type Prepared = Set<string>;

export function runPipeline(
  client: Client,
  writer: WireWriter,
  prepared: Prepared,
  statements: readonly Bound[],
): Promise<readonly Result[]> {
  return new Promise((resolve, reject) => {
    client.query(new Pipeline(writer, prepared, statements, resolve, reject));
  });
}

/** The driver calls these methods on the query it has sent last. */
class Pipeline implements Submittable {
  readonly #writer: WireWriter;
  readonly #prepared: Prepared;
  readonly #statements: readonly Bound[];
  readonly #resolve: (results: readonly Result[]) => void;
  readonly #reject: (error: Error) => void;
  readonly #results: Result[] = [];
  #rows: (string | null)[][] = [];
  #forget: (() => void) | undefined;

  constructor(
    writer: WireWriter,
    prepared: Prepared,
    statements: readonly Bound[],
    resolve: (results: readonly Result[]) => void,
    reject: (error: Error) => void,
  ) {
    this.#writer = writer;
    this.#prepared = prepared;
    this.#statements = statements;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: Connection): void {
    const parsed: string[] = [];
    for (const statement of this.#statements) {
      const { name } = statement.shape;
      if (name === undefined || !(this.#prepared.has(name) || parsed.includes(name))) {
        this.#writer.parse(statement);
        parsed.push(name ?? "");
      }
      this.#writer.bindAndExecute(statement);
    }
    this.#writer.sync();
    if (parsed.length > 0) this.#count(connection, parsed);
    connection.stream.write(this.#writer.take());
  }

  /** pipeline.P2 */
  #count(connection: Connection, names: readonly string[]): void {
    let count = 0;
    const complete = (): void => {
      const name = names[count++];
      if (name !== undefined && name !== "") this.#prepared.add(name);
    };
    connection.on("parseComplete", complete);
    this.#forget = () => connection.off("parseComplete", complete);
  }

  handleDataRow({ fields }: { readonly fields: (string | null)[] }): void {
    this.#rows.push(fields);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#results.push({ rows: this.#rows, tag: text });
    this.#rows = [];
  }

  handleReadyForQuery(): void {
    this.#forget?.();
    this.#resolve(this.#results);
  }

  handleError(error: Error): void {
    this.#forget?.();
    this.#reject(error);
  }

  handleRowDescription(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}
