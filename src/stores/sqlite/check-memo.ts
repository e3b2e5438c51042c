// Check memo: every remembered result matches the key that is stored with it (memo.M4).

import type { Problem } from "../../kernel/index.ts";
import { listMemos } from "../rules/memo.ts";
import type { Rows } from "../rows/rows.ts";

const PAGE = 100;

export function checkMemo(rows: Rows): readonly Problem[] {
  const problems: Problem[] = [];
  for (let after: string | undefined; ;) {
    const { groups, next } = listMemos(rows, { limit: PAGE, off: true, ...(after !== undefined && { after }) });
    for (const { memo, status, rows: found } of groups)
      if (status === "damaged")
        problems.push({
          invariant: "I47 memo matches its key",
          run: found[0]?.runId,
          seq: found[0]?.seq,
          message: `A remembered result with the key ${memo} is damaged, so it is not reused. Run \`reprise memo clear ${memo}\`.`,
        });
    if (next === undefined) return problems;
    after = next;
  }
}
