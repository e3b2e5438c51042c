// Joined inputs: reads the inputs of nodes with one join per request, where the rule (../rules/flow-reads.ts) reads the arrivals and
// then each entry: 3.6 instead of 7 µs for a node with one input.
//
// joined-inputs.J1. The result is that of the rule; a test compares both.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { InputsRequest, NodeInput } from "../../kernel/index.ts";
import { arrivalKindOf } from "../rules/flow-reads.ts";
import { payloadArguments } from "./row-sql.ts";
import type { SqliteRows } from "./sqlite-rows.ts";

type InputRow = [target: string, edge: string, index: number, kind: number, seq: number, data: string];

export class JoinedInputs {
  readonly #db: DatabaseSync;
  readonly #data: string;
  readonly #rows: SqliteRows;
  #ofOne: StatementSync | undefined;
  #ofMany: StatementSync | undefined;

  constructor(db: DatabaseSync, withCodec: boolean, rows: SqliteRows) {
    this.#db = db;
    this.#rows = rows;
    const place = payloadArguments("journal", (column) => `journal.${column}`).join(", ");
    this.#data = withCodec ? `reprise_decode(data, ${place})` : "cast(data as text)";
  }

  /** rules.F7. A single target has its own statement, without a JSON list for SQLite to unpack. */
  read(requests: readonly InputsRequest[]): readonly (readonly NodeInput[])[] {
    return requests.map(({ run, targets }) => {
      const rows =
        targets.length === 1
          ? (this.#ofOne ??= this.#prepare("target = ?")).all(run, targets[0] ?? "")
          : (this.#ofMany ??= this.#prepare("target in (select value from json_each(?))")).all(
              run,
              JSON.stringify(targets),
            );
      return (rows as unknown as InputRow[]).map(([target, edge, index, kind, seq, data]) => ({
        target,
        edge,
        index,
        kind: arrivalKindOf(kind),
        seq,
        data: this.#rows.assemble(data),
      }));
    });
  }

  #prepare(targets: string): StatementSync {
    const statement = this.#db.prepare(`select target, edge, idx, kind, arrivals.seq, ${this.#data}
      from arrivals cross join journal on journal.run = arrivals.run and journal.seq = arrivals.seq
      where arrivals.run = ? and ${targets} order by target, edge, idx`);
    statement.setReturnArrays(true);
    return statement;
  }
}
