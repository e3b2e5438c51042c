// Schema additions: the tables that later migrations add (schema.ts).

// Answers to requests with an idempotency key (kernel/keyed-answer.ts). `request` and `body` are hashes. While `status` is null, the
// request is executed, until `held_until` at most by the process that reserved it.
export const NINTH = `
create table keyed_answers (
  request text primary key,
  body text not null,
  at integer not null,
  held_until integer not null,
  status integer,
  answer blob
) strict, without rowid;
create index keyed_answers_by_age on keyed_answers (at);
`;

// Texts that payloads of a run refer to (contents/run-contents.ts). `content` is the digest of the text, `size` its length in characters.
// Without `data` the text is outside of the store.
export const TENTH = `
create table run_contents (
  run integer not null,
  content text not null,
  size integer not null,
  data blob,
  primary key (run, content)
) strict;
`;
