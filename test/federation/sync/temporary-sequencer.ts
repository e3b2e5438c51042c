import type { Store } from "../../../src/kernel/index.ts";
import type { SigningKey } from "../../../src/receipts/index.ts";
import { readOwnEnd } from "../../../src/federation/sync/own-log.ts";
import { publishedContents, publishedForm } from "../../../src/federation/sync/published-run.ts";
import { nextRecord, recordText } from "../../../src/federation/log/record.ts";

export class Sequencer {
  readonly store: Store;
  readonly key: SigningKey;
  readonly keep: boolean;
  constructor(store: Store, key: SigningKey, { keep }: { keep: boolean }) {
    this.store = store;
    this.key = key;
    this.keep = keep;
  }
  async run(): Promise<void> {
    await this.store.noteEnded(0, 1000);
    for (const { record } of await this.store.listEnded(1000)) {
      const end = await readOwnEnd(this.store, this.key);
      const { runRecord } = await publishedContents(this.store, record, this.key, await publishedForm(this.store));
      const rec = recordText(nextRecord(end, { op: "put", k: runRecord.key }));
      await this.store.write([
        {
          write: "sequence",
          expect: end.rows,
          records: [{ rec, run: record.run, head: record.head }],
          done: [{ run: record.run, head: record.head, keep: this.keep }],
        },
      ]);
    }
  }
}
