// reprise replay: today's code against a run's journal. Nothing outside is called, nothing is written.

import { checkCode } from "./check-code.ts";
import type { GlobalOptions } from "./global-options.ts";

export function replay(id: string, file: string, options: GlobalOptions): Promise<number> {
  return checkCode("replay", id, file, options);
}
