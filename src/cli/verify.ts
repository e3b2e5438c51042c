// reprise verify: `replay`, and before it the journal against its own hash chain.

import { checkCode } from "./check-code.ts";
import type { GlobalOptions } from "./global-options.ts";

export function verify(id: string, file: string, options: GlobalOptions): Promise<number> {
  return checkCode("verify", id, file, options);
}
