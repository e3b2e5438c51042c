// Server errors: the codes of the error catalogue with which the HTTP server refuses a caller. The caller must change the request.

export const SERVER_ERRORS = {
  LINK_CLOSED: {
    family: "usage",
    summary: "The approval link cannot answer: its promise has an answer, its run has ended, or the link has expired.",
    next: "Ask the sender for a new link if the promise is still open: `reprise promises` lists those that are.",
  },
  ROLE_REQUIRED: {
    family: "usage",
    summary: "The token is valid, but its role or its scope does not allow this operation.",
    next: "Use a token with the role that the message names: `reprise token create <name> --role <role>`.",
  },
  SERVER_UNREACHABLE: {
    family: "usage",
    summary: "A client over HTTP got no answer from its server, or an answer that is not of Reprise.",
    next: "Check the address that was passed to `createHttpClient`, and that `reprise serve` runs there.",
  },
  TOKEN_REQUIRED: {
    family: "usage",
    summary: "The request has no token, or its token or session is unknown, expired or revoked.",
    next: "Send `Authorization: Bearer <token>`; `reprise token create <name> --role <role>` prints a token. In a browser, sign in at `/login`.",
  },
  WEBHOOK_REFUSED: {
    family: "usage",
    summary: "A webhook was not accepted: its signature is missing, wrong or too old, or there is no such hook.",
    next: "Compare the secret of the hook with the one that the sender signs with, and the clocks of both machines.",
  },
  WRONG_HOST: {
    family: "usage",
    summary: "The Host header names another server, as it does when a page makes its own name resolve to this machine.",
    next: "Use the address that the server prints, or pass the public address: `createServer(engine, { origin })`, `reprise serve --origin <url>`.",
  },
  WRONG_ORIGIN: {
    family: "usage",
    summary: "The request comes from a page of another origin, or could have been sent by one.",
    next: "Name the origin in `cors` of `createServer`. Outside of a browser, send JSON with a bearer token or the header `x-reprise: 1`.",
  },
} as const;
