// Key functions: the types of the `key` option, which maps the input of a task or run to a queue key.
//
// TypeScript fixes a type parameter at the first function that needs it. The options precede the function that takes the input,
// so without a schema `key` has a type parameter of its own: its unannotated parameter is `any`, and the input is inferred from
// the function. An annotated parameter is checked against the input.

/** Maps an input to a queue key. */
export type KeyFunction = (input: any) => string;

/** The annotated input of a key function; void if there is none. */
export type InputOfKey<Key> = Key extends (input: infer Input) => string
  ? 0 extends 1 & Input
    ? void
    : unknown extends Input
      ? void
      : Input
  : void;

/** `unknown` if the key function takes the input, otherwise an error message. */
export type KeyTakes<Key, Input> = Key extends (input: infer Taken) => string
  ? [Input] extends [Taken]
    ? unknown
    : "`key` takes another input than the function"
  : unknown;
