// A module for --codec: keys from the environment, and more names of secrets.

import { aesGcm } from "reprise";

const one = Buffer.alloc(32, 1);
const two = Buffer.alloc(32, 2);

export const codec = aesGcm(
  process.env["CLI_TEST_KEYS"] === "two"
    ? { keys: { two }, current: "two" }
    : { keys: { one, two }, current: process.env["CLI_TEST_CURRENT"] ?? "one" },
);
export const redact = { keys: ["cardNumber"], values: (): readonly string[] => ["sk-canary-51f0"] };
