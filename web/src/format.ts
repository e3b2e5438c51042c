// Format: numbers, times and durations as text, in the form that the command line uses.

const numbers = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return numbers.format(value);
}

/** `1 run`, `2 runs`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** 38 ms, 2.01 s, 1 m 33 s, 1 h 1 m, 3 d 4 h. */
export function duration(ms: number): string {
  const value = Math.max(0, ms);
  if (value < 1) return value === 0 ? "0 ms" : "< 1 ms";
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1000).toFixed(1)} s`;
  if (value < 60_000) return `${Math.floor(value / 1000)} s`;
  const seconds = Math.floor(value / 1000);
  if (seconds < 3600) return two(Math.floor(seconds / 60), "m", seconds % 60, "s");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return two(Math.floor(minutes / 60), "h", minutes % 60, "m");
  const hours = Math.floor(minutes / 60);
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** With a digit more than `duration`: 1.20 s, 40 ms. */
export function exactDuration(ms: number): string {
  if (ms >= 1000 && ms < 10_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms >= 10_000 && ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return duration(ms);
}

/** Of something that still runs: whole seconds, so that every tick changes it by one. */
export function tickingDuration(ms: number): string {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1000))} s` : duration(ms);
}

function two(first: number, firstUnit: string, second: number, secondUnit: string): string {
  return second === 0 ? `${first} ${firstUnit}` : `${first} ${firstUnit} ${second} ${secondUnit}`;
}

const pad = (value: number, length = 2): string => String(value).padStart(length, "0");

/** 14:02:11 */
export function clockTime(time: string | number): string {
  const date = new Date(time);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** 14:02:18.104 */
export function exactTime(time: string | number): string {
  return `${clockTime(time)}.${pad(new Date(time).getMilliseconds(), 3)}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Nov 16, with the year if it is another one. */
export function day(time: string | number, today: number): string {
  const date = new Date(time);
  const text = `${MONTHS[date.getMonth()]} ${date.getDate()}`;
  return date.getFullYear() === new Date(today).getFullYear() ? text : `${text}, ${date.getFullYear()}`;
}

/** 14:02:11 today, Nov 16, 14:02 on another day. */
export function shortTime(time: string | number, today: number): string {
  if (new Date(time).toDateString() === new Date(today).toDateString()) return clockTime(time);
  return `${day(time, today)}, ${clockTime(time).slice(0, 5)}`;
}

/** Nov 16, 14:02:11 */
export function longTime(time: string | number, today: number): string {
  return `${day(time, today)}, ${clockTime(time)}`;
}

/** 4.2%, 12%, < 0.1%. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part === 0) return "0%";
  const value = (part / whole) * 100;
  if (value < 0.1) return "< 0.1%";
  return value < 10 ? `${Number(value.toFixed(1))}%` : `${Math.round(value)}%`;
}

/** Of a cost: $2, $0.97, $0.00029, 3,907 tokens. Dollars have two significant digits, and cents. */
export function amount(unit: "usd" | "tokens" | "calls", value: number): string {
  if (unit !== "usd") return plural(value, unit.slice(0, -1));
  const most = value <= 0 || value >= 0.1 ? 2 : Math.min(10, Math.ceil(-Math.log10(value)) + 1);
  const least = value >= 0.1 && !Number.isInteger(value) ? 2 : 0;
  return `$${value.toLocaleString("en-US", { minimumFractionDigits: least, maximumFractionDigits: most })}`;
}

export function capital(text: string): string {
  return text === "" ? text : text[0]!.toUpperCase() + text.slice(1);
}
