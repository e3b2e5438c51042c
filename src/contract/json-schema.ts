// JSON Schema with types: the small part of JSON Schema 2020-12 that the HTTP API uses. One value is the type for TypeScript, the check
// of requests (check-json.ts) and the text of the OpenAPI document.
//
// json-schema.S1. A schema is plain JSON: `JSON.stringify` gives what a validator of another language understands.

/** A schema whose values have the type `T`. */
export interface JsonSchema<T = unknown> {
  readonly "~type"?: T;
  readonly type?: string;
  readonly description?: string;
  readonly [keyword: string]: unknown;
}

/** The type of a schema's values. */
export type Static<S> = S extends JsonSchema<infer T> ? T : never;

/** A property that may be absent; made with `optional`. */
export interface OptionalSchema<T> {
  readonly optional: JsonSchema<T>;
}

type Properties = Readonly<Record<string, JsonSchema<any> | OptionalSchema<any>>>;
type RequiredKeys<P extends Properties> = { [K in keyof P]: P[K] extends OptionalSchema<any> ? never : K }[keyof P];
type OptionalKeys<P extends Properties> = { [K in keyof P]: P[K] extends OptionalSchema<any> ? K : never }[keyof P];
type Flat<T> = { [K in keyof T]: T[K] };

/** The type of an object with these properties. */
export type ObjectOf<P extends Properties> = Flat<
  { readonly [K in RequiredKeys<P>]: P[K] extends JsonSchema<infer T> ? T : never } & {
    readonly [K in OptionalKeys<P>]?: P[K] extends OptionalSchema<infer T> ? T : never;
  }
>;

interface TextRules {
  readonly description?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

interface NumberRules {
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: number;
}

interface ListRules {
  readonly description?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
}

export const text = (rules: TextRules = {}): JsonSchema<string> => ({ type: "string", ...rules });
/** A time in ISO 8601. */
export const time = (description?: string): JsonSchema<string> => ({
  type: "string",
  format: "date-time",
  ...(description !== undefined && { description }),
});
export const integer = (rules: NumberRules = {}): JsonSchema<number> => ({ type: "integer", ...rules });
export const number = (rules: NumberRules = {}): JsonSchema<number> => ({ type: "number", ...rules });
export const boolean = (description?: string): JsonSchema<boolean> => ({
  type: "boolean",
  ...(description !== undefined && { description }),
});
/** One of these texts. */
export const oneOf = <const T extends readonly string[]>(values: T, description?: string): JsonSchema<T[number]> => ({
  type: "string",
  enum: values,
  ...(description !== undefined && { description }),
});
/** Any JSON value: a payload. */
export const json = (description = "Any JSON value."): JsonSchema<unknown> => ({ description });
export const list = <T>(items: JsonSchema<T>, rules: ListRules = {}): JsonSchema<readonly T[]> => ({
  type: "array",
  items,
  ...rules,
});
/** An object with any keys and values of one type. */
export const record = <T>(values: JsonSchema<T>, description?: string): JsonSchema<{ readonly [key: string]: T }> => ({
  type: "object",
  additionalProperties: values,
  ...(description !== undefined && { description }),
});
export const optional = <T>(schema: JsonSchema<T>): OptionalSchema<T> => ({ optional: schema });

/** An object with these properties and no others. */
export function object<const P extends Properties>(properties: P, description?: string): JsonSchema<ObjectOf<P>> {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]!));
  const schemas = Object.entries(properties).map(
    ([name, one]) => [name, isOptional(one) ? one.optional : one] as const,
  );
  return {
    type: "object",
    properties: Object.fromEntries(schemas),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
    ...(description !== undefined && { description }),
  };
}

/** A value that matches one of several schemas. */
export function anyOf<const S extends readonly JsonSchema<any>[]>(...schemas: S): JsonSchema<Static<S[number]>> {
  return { anyOf: schemas };
}

function isOptional(one: JsonSchema<any> | OptionalSchema<any>): one is OptionalSchema<any> {
  return "optional" in one && !("type" in one);
}

/** A page of a list: `after=<next>` continues it. */
export const pageOf = <T>(items: JsonSchema<T>): JsonSchema<{ readonly items: readonly T[]; readonly next?: string }> =>
  object({
    items: list(items),
    next: optional(text({ description: "The cursor of the next page; absent on the last." })),
  });
