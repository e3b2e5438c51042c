// A strict reader of the OpenMetrics text format 1.0: throws at the first thing that the specification does not allow.

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly unit: string | undefined;
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ["_total"],
  gauge: [""],
  histogram: ["_bucket", "_count", "_sum"],
};

export function parseOpenMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith("\n# EOF\n")) throw new Error("The page does not end with # EOF.");
  const families = new Map<string, Family & { samples: Sample[] }>();
  let current: (Family & { samples: Sample[]; unit: string | undefined }) | undefined;
  for (const line of text.split("\n").slice(0, -2)) {
    const [, kind, name = "", rest = ""] = /^# (TYPE|UNIT|HELP) ([a-zA-Z_:][\w:]*) (.*)$/.exec(line) ?? [];
    if (kind === "TYPE") {
      if (families.has(name)) throw new Error(`The family ${name} is there twice.`);
      if (!(rest in SUFFIXES)) throw new Error(`${name} has the type ${rest}.`);
      if (rest === "counter" && name.endsWith("_total"))
        throw new Error(`The family ${name} must not end with _total.`);
      families.set(name, (current = { name, type: rest, unit: undefined, samples: [] }));
    } else if (kind !== undefined) {
      if (current?.name !== name || current.samples.length > 0) throw new Error(`A line is out of place: ${line}`);
      if (kind === "UNIT" && !name.endsWith(`_${rest}`)) throw new Error(`${name} does not end with its unit.`);
      if (kind === "UNIT") Object.assign(current, { unit: rest });
    } else {
      if (current === undefined) throw new Error(`A sample without a family: ${line}`);
      current.samples.push(sampleOf(line, current));
    }
  }
  for (const family of families.values()) check(family);
  return families;
}

function sampleOf(line: string, { name, type }: Family): Sample {
  const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+?Inf)|NaN)$/.exec(line);
  if (match === null) throw new Error(`Not a sample: ${line}`);
  const [, full = "", labelText = "", value = ""] = match;
  if (!full.startsWith(name) || !SUFFIXES[type]!.includes(full.slice(name.length)))
    throw new Error(`${full} is no sample of the ${type} ${name}.`);
  const labels: Record<string, string> = {};
  const pattern = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
  while (pattern.lastIndex < labelText.length) {
    const [, label = "", text = ""] = pattern.exec(labelText) ?? [];
    if (label === "" || label in labels) throw new Error(`Bad labels: ${line}`);
    labels[label] = text.replaceAll(/\\([\\"n])/g, (_all, one: string) => (one === "n" ? "\n" : one));
  }
  return { name: full, labels, value: Number(value.replace("Inf", "Infinity")) };
}

function check({ name, type, unit, samples }: Family): void {
  if (name.endsWith("_seconds") && unit !== "seconds") throw new Error(`${name} has no unit.`);
  const keys = samples.map(({ name: one, labels }) => `${one} ${JSON.stringify(Object.entries(labels).toSorted())}`);
  if (new Set(keys).size !== keys.length) throw new Error(`${name} has a sample twice.`);
  if (type === "counter" && samples.some(({ value }) => value < 0)) throw new Error(`${name} is negative.`);
  if (type === "histogram") checkHistogram(name, samples);
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = Map.groupBy(samples, ({ labels }) => JSON.stringify({ ...labels, le: undefined }));
  for (const [key, group] of groups) {
    const buckets = group.filter((one) => one.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number(labels["le"]!.replace("Inf", "Infinity")));
    if (bounds.at(-1) !== Infinity || bounds.some((bound, index) => index > 0 && bound <= bounds[index - 1]!))
      throw new Error(`The buckets of ${name} ${key} are not in order.`);
    if (buckets.some(({ value }, index) => index > 0 && value < buckets[index - 1]!.value))
      throw new Error(`The buckets of ${name} ${key} do not grow.`);
    if (buckets.some(({ labels }) => /^\d+$/.test(labels["le"]!))) throw new Error(`A bound of ${name} is no float.`);
    if (group.find((one) => one.name === `${name}_count`)?.value !== buckets.at(-1)!.value)
      throw new Error(`The count of ${name} ${key} is not that of its last bucket.`);
    if (!group.some((one) => one.name === `${name}_sum`)) throw new Error(`${name} ${key} has no sum.`);
  }
}
