// The definitions of verify, with another value.

import { buildWhole, double, part } from "../verify-definitions.ts";

export { double, part };
export const whole = buildWhole({ step: "note", added: 0, factor: 2 });
