// Worker label: the name and the short tag of a worker, `shop-1 (2f9k)`.

import { workerTag } from "../kernel/index.ts";
import { plain } from "./text.ts";

export function workerLabel(name: string, worker: number): string {
  return `${plain(name)} (${workerTag(worker)})`;
}
