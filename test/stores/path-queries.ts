// Path queries: the reads of the row port as queries of a backend, for tests of plans.

import { pathInfo, type Path } from "../../src/stores/rows/indexes.ts";
import type { Key, Span } from "../../src/stores/rows/rows.ts";
import { countConditions, prefixColumns, selectQuery } from "../../src/stores/remote/path-query.ts";
import {
  lookup,
  type Count,
  type Distinct,
  type Lock,
  type Lookup,
  type Select,
} from "../../src/stores/remote/query.ts";

export function selectBy(path: Path, prefix: Key, span: Span = {}, lock: Lock = "none"): Select {
  return selectQuery(pathInfo(path), prefix, span, lock);
}

export function lookupBy(path: Path, key: Key, lock: Lock = "none"): Lookup {
  const info = pathInfo(path);
  return lookup(info.table, prefixColumns(info, key), [key], lock);
}

export function countBy(path: Path, prefix: Key, more: Omit<Partial<Count>, "kind" | "table" | "where"> = {}): Count {
  const info = pathInfo(path);
  return { kind: "count", table: info.table, where: countConditions(info, prefix), ...more };
}

export function distinctBy(path: Path, prefix: Key, ...columns: readonly string[]): Distinct {
  const info = pathInfo(path);
  return { kind: "distinct", table: info.table, columns, where: countConditions(info, prefix) };
}
