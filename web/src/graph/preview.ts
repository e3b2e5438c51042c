// Preview: a JSON value in one line for people, `{ order: "57802", cents: 7200 }`, of bounded length and made in bounded time.
//
// preview.P1. The work is bounded by `limit`, whatever the size and depth of the value: a text of 8 MB is cut before it is escaped.

const DEPTH = 6;

export function preview(value: unknown, limit = 200): string {
  const out = new Budget(limit);
  write(value, out, 0);
  return out.text;
}

class Budget {
  text = "";
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.text.length >= this.#limit;
  }

  get left(): number {
    return this.#limit - this.text.length;
  }

  add(part: string): void {
    if (this.isFull) return;
    this.text += part;
    if (this.text.length > this.#limit) this.text = `${this.text.slice(0, this.#limit - 1)}…`;
  }
}

function write(value: unknown, out: Budget, depth: number): void {
  if (out.isFull) return;
  if (typeof value === "string")
    out.add(JSON.stringify(value.length > out.left ? value.slice(0, out.left + 1) : value));
  else if (typeof value !== "object" || value === null) out.add(String(value));
  else if (depth >= DEPTH) out.add(Array.isArray(value) ? "[ … ]" : "{ … }");
  else if (Array.isArray(value)) writeList(value, out, depth);
  else writeObject(value as Record<string, unknown>, out, depth);
}

function writeList(list: readonly unknown[], out: Budget, depth: number): void {
  if (list.length === 0) return out.add("[]");
  out.add("[ ");
  for (let index = 0; index < list.length && !out.isFull; index += 1) {
    if (index > 0) out.add(", ");
    write(list[index], out, depth + 1);
  }
  out.add(" ]");
}

function writeObject(object: Record<string, unknown>, out: Budget, depth: number): void {
  let isFirst = true;
  out.add("{");
  for (const name in object) {
    if (!Object.hasOwn(object, name)) continue;
    if (out.isFull) return;
    out.add(isFirst ? " " : ", ");
    isFirst = false;
    out.add(/^[A-Za-z_$][\w$]{0,63}$/.test(name) ? name : JSON.stringify(name.slice(0, out.left + 1)));
    out.add(": ");
    write(object[name], out, depth + 1);
  }
  out.add(isFirst ? "}" : " }");
}
