// The definitions of verify, with another input.

import { buildWhole, double, part } from "../verify-definitions.ts";

export { double, part };
export const whole = buildWhole({ step: "note", added: 1, factor: 1 });
