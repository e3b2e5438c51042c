// Budget tables: the migration that adds budgets.

// Budgets (kernel/spending.ts). A budget has the number of the run that it belongs to, which pays from it together with its children;
// `runs.budget` names it. Dollars are counted in millionths; a dimension without a cap has null. `parent` is the budget that `moved`
// came from, until the budget is `closed`. A reservation is open, waiting or declined (`state`); `item` says whether it is about an
// item of the queue.
export const BUDGETS = `
alter table runs add column budget integer;
create table run_budgets (
  budget integer primary key,
  owner text not null,
  parent integer,
  on_reached text not null,
  closed integer not null,
  cap_usd integer,
  cap_tokens integer,
  cap_calls integer,
  moved_usd integer not null,
  moved_tokens integer not null,
  moved_calls integer not null,
  spent_usd integer not null,
  spent_tokens integer not null,
  spent_calls integer not null,
  reserved_usd integer not null,
  reserved_tokens integer not null,
  reserved_calls integer not null,
  lost_usd integer not null,
  lost_tokens integer not null,
  lost_calls integer not null
) strict;
create table budget_reservations (
  run integer not null,
  command text not null,
  budget integer not null,
  execution integer not null,
  state integer not null,
  item integer not null,
  usd integer not null,
  tokens integer not null,
  calls integer not null,
  at integer not null,
  primary key (run, command)
) strict, without rowid;
create index budget_reservations_waiting on budget_reservations (budget, at, run, command) where state = 1;
`;
