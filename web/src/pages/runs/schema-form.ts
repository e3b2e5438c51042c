// Schema form: reads a JSON Schema into fields that a form can show, and makes an example from it.

/** The part of a JSON Schema that the form understands. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly format?: string;
}

export interface Field {
  readonly name: string;
  readonly kind: "text" | "number" | "boolean" | "choice" | "json";
  readonly required: boolean;
  readonly description?: string;
  readonly choices?: readonly unknown[];
}

/** The fields of an object; `undefined` if the input is no object, so that only the JSON editor fits. */
export function fieldsOf(schema: Schema | undefined): readonly Field[] | undefined {
  if (schema?.properties === undefined) return undefined;
  const fields = Object.entries(schema.properties).map(([name, one]): Field => {
    const description = one.description ?? one.title;
    return {
      name,
      kind: kindOf(one),
      required: schema.required?.includes(name) ?? false,
      ...(description !== undefined && { description }),
      ...(Array.isArray(one.enum) && { choices: one.enum }),
    };
  });
  return fields.length === 0 ? undefined : fields;
}

function kindOf(schema: Schema): Field["kind"] {
  if (Array.isArray(schema.enum)) return "choice";
  if (schema.type === "string") return "text";
  if (schema.type === "number" || schema.type === "integer") return "number";
  if (schema.type === "boolean") return "boolean";
  return "json";
}

/** A value that the schema may accept, to start from. */
export function exampleOf(schema: Schema | undefined, depth = 0): unknown {
  if (schema === undefined || depth > 5) return {};
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.examples?.[0] !== undefined) return schema.examples[0];
  if (schema.enum?.[0] !== undefined) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "string") return "";
  if (type === "number" || type === "integer")
    return Math.min(Math.max(schema.minimum ?? 0, 0), schema.maximum ?? Infinity);
  if (type === "boolean") return false;
  if (type === "array") return [];
  if (type === "null") return null;
  const entries = Object.entries(schema.properties ?? {}).filter(([name]) => schema.required?.includes(name) ?? true);
  return Object.fromEntries(entries.map(([name, one]) => [name, exampleOf(one, depth + 1)]));
}

/** The value of a field from its text; throws a SyntaxError for JSON that is none. */
export function valueOf(field: Field, text: string): unknown {
  if (text === "" && !field.required) return undefined;
  switch (field.kind) {
    case "text":
      return text;
    case "number":
      return Number(text);
    case "boolean":
      return text === "true";
    case "choice":
      return field.choices?.find((choice) => String(choice) === text);
    case "json":
      return JSON.parse(text) as unknown;
  }
}

export function textOfValue(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
