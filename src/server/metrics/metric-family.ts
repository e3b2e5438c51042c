// Metric family: samples of one name, by the values of their labels, as lines of the OpenMetrics text format.
//
// metric-family.F1. A family has at most `limit` sets of labels. Later ones are counted together, with the value `other` for every
//   label: names come from programs, and a page that grows without end is of no use to its reader.

export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** metric-family.F1 */
  readonly limit?: number;
}

const DEFAULT_LIMIT = 200;
const OTHER = "other";

abstract class Family<S> {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  abstract readonly type: "counter" | "gauge" | "histogram";
  readonly #limit: number;
  readonly samples = new Map<string, S>();

  constructor({ name, help, labels = [], limit = DEFAULT_LIMIT }: FamilyOptions) {
    this.name = name;
    this.help = help;
    this.labels = labels;
    this.#limit = limit;
  }

  /** The sample of these values, created by `make`; by the text of its labels. */
  protected sample(values: readonly string[], make: () => S): S {
    let key = this.#text(values);
    let found = this.samples.get(key);
    if (found !== undefined) return found;
    if (this.samples.size >= this.#limit) {
      key = this.#text(this.labels.map(() => OTHER));
      found = this.samples.get(key);
    }
    if (found === undefined) this.samples.set(key, (found = make()));
    return found;
  }

  #text(values: readonly string[]): string {
    return this.labels.map((label, index) => `${label}="${escaped(values[index] ?? "")}"`).join(",");
  }

  protected abstract lines(labels: string, sample: S): readonly string[];

  text(): string {
    const unit = this.name.endsWith("_seconds") ? [`# UNIT ${this.name} seconds`] : [];
    const head = [`# TYPE ${this.name} ${this.type}`, ...unit, `# HELP ${this.name} ${escaped(this.help)}`];
    return [...head, ...[...this.samples].flatMap(([labels, sample]) => this.lines(labels, sample))].join("\n");
  }
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function inBraces(...labels: readonly string[]): string {
  const all = labels.filter((one) => one !== "").join(",");
  return all === "" ? "" : `{${all}}`;
}

export type AnyFamily = Family<any>;

/** `name` without `_total`, which its samples have. */
export class Counter extends Family<{ value: number }> {
  readonly type = "counter";

  add(values: readonly string[], by = 1): void {
    this.sample(values, () => ({ value: 0 })).value += by;
  }

  protected lines(labels: string, { value }: { value: number }): readonly string[] {
    return [`${this.name}_total${inBraces(labels)} ${value}`];
  }
}

export class Gauge extends Family<{ value: number }> {
  readonly type = "gauge";

  set(values: readonly string[], value: number): void {
    this.sample(values, () => ({ value: 0 })).value = value;
  }

  /** With the value of others that share its labels. */
  add(values: readonly string[], by: number): void {
    this.sample(values, () => ({ value: 0 })).value += by;
  }

  /** Keeps the greater value. */
  raise(values: readonly string[], value: number): void {
    const sample = this.sample(values, () => ({ value }));
    sample.value = Math.max(sample.value, value);
  }

  clear(): void {
    this.samples.clear();
  }

  protected lines(labels: string, { value }: { value: number }): readonly string[] {
    return [`${this.name}${inBraces(labels)} ${value}`];
  }
}

interface Observed {
  readonly counts: number[];
  sum: number;
}

export class Histogram extends Family<Observed> {
  readonly type = "histogram";
  readonly #bounds: readonly number[];

  constructor(options: FamilyOptions & { readonly bounds: readonly number[] }) {
    super({ limit: 100, ...options });
    this.#bounds = options.bounds;
  }

  observe(values: readonly string[], value: number): void {
    const observed = this.sample(values, () => ({
      counts: Array.from({ length: this.#bounds.length + 1 }, () => 0),
      sum: 0,
    }));
    const at = this.#bounds.findIndex((bound) => value <= bound);
    observed.counts[at === -1 ? this.#bounds.length : at]! += 1;
    observed.sum += value;
  }

  protected lines(labels: string, { counts, sum }: Observed): readonly string[] {
    let total = 0;
    const buckets = counts.map((count, index) => {
      total += count;
      const bound = this.#bounds[index];
      const text = bound === undefined ? "+Inf" : Number.isInteger(bound) ? `${bound}.0` : String(bound);
      return `${this.name}_bucket${inBraces(labels, `le="${text}"`)} ${total}`;
    });
    return [...buckets, `${this.name}_count${inBraces(labels)} ${total}`, `${this.name}_sum${inBraces(labels)} ${sum}`];
  }
}
