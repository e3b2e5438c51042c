// Access: how a browser signs in and out, and tokens for one page.

import { object, oneOf, optional, text, time } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { duration } from "./parameters.ts";

export const accessOperations = {
  signIn: operation({
    role: "public",
    method: "POST",
    path: "/v1/session",
    group: "Access",
    summary:
      "Signs a browser in with a one-time code or a token: the answer sets a cookie. Needs the header `x-reprise: 1`.",
    body: object({
      code: optional(text({ maxLength: 100, description: "The part of the one-time address behind `#`." })),
      token: optional(text({ maxLength: 200, description: "An API token." })),
    }),
    secret: true,
    status: 204,
    answer: null,
    example: { body: { token: "rp_7c1f09ab_2TgOXqvF0Qq5rY8yq8mJr0mH1cJt3Vw5sYb7zKd9eQE" } },
  }),
  signOut: operation({
    role: "public",
    method: "DELETE",
    path: "/v1/session",
    group: "Access",
    summary: "Ends the session of a browser. Needs the header `x-reprise: 1`.",
    body: object({}),
    status: 204,
    answer: null,
    example: {},
  }),
  createBrowserToken: operation({
    role: "reader",
    method: "POST",
    path: "/v1/tokens",
    group: "Access",
    summary:
      "Makes a token for one page: it reads one run, or one stream of it, or answers its promises, for an hour at most. It allows no more than the caller may do.",
    body: object({
      run: text({ minLength: 1, maxLength: 255 }),
      stream: optional(text({ minLength: 1, maxLength: 200 })),
      role: oneOf(["reader", "approver"]),
      ttl: optional(duration),
      name: optional(
        text({ minLength: 1, maxLength: 100, description: "Who uses the page: part of `by` of its answers." }),
      ),
    }),
    scope: "filtered",
    secret: true,
    status: 201,
    answer: object({ token: text(), expiresAt: time() }),
    example: { body: { run: "order-1042", role: "reader", ttl: "10 minutes" } },
  }),
};
