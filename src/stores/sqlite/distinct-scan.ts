// Distinct scan: SQL for the distinct values of an index's first column, one seek per value (a loose index scan).

export function distinctScan(column: string, table: string, where: string): string {
  const next = (after: string): string =>
    `select ${column} from ${table} where ${where}${after} order by ${column} limit 1`;
  return `with recursive found (value) as (
    select * from (${next("")})
    union all
    select (${next(` and ${column} > found.value`)}) from found where found.value is not null
  ) select value from found where value is not null`;
}
