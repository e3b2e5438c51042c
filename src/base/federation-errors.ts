// Federation errors: the codes of the error catalogue on which the maker of a bundle, or the operator of another site, must act.

export const FEDERATION_ERRORS = {
  BUNDLE_DAMAGED: {
    family: "federation",
    summary: "A bundle is not what its maker wrote: a line is missing, cut off, changed, or of an unknown kind.",
    next: "Get the file again from its maker. `reprise verify <file>` names the line.",
  },
  CARRIER_REFUSED: {
    family: "federation",
    summary:
      "A carrier refused a request, or answered in a way that Reprise does not accept: no permission, a redirect, a symbolic link.",
    next: "Do what the message names: correct the token, the keys, the permissions or the address of the carrier.",
  },
  CARRIER_UNREACHABLE: {
    family: "federation",
    summary: "A carrier did not answer, answered too slowly, or its disk, folder or server is not there.",
    next: "Check that the server runs, or that the disk is mounted, and repeat the command; nothing is lost.",
  },
  CHECKPOINT_INVALID: {
    family: "federation",
    summary: "A checkpoint is not a signed note of origin, size and root, or a signature is not of its text.",
    next: "Fetch it again with `reprise pull <peer>`. If it stays, the operator of that site must check its log: `reprise head`.",
  },
  CONTENT_DAMAGED: {
    family: "federation",
    summary: "Bytes do not have the key, type, size or SHA-256 that another site says they have.",
    next: "Pull again, from another peer if there is one. `reprise fed conflicts` lists the evidence.",
  },
  FORKED: {
    family: "federation",
    summary: "A log has two branches: its key signed two heads that do not extend each other.",
    next: "Nothing after the last common record is taken. `reprise fed conflicts` has the evidence; its operator decides which branch holds.",
  },
  LIMIT_EXCEEDED: {
    family: "federation",
    summary:
      "A request, a file, a record or a batch is larger, takes longer or comes more often than this server or the other site allows.",
    next: "Send less, or repeat it later. Raise the limit that the message names if you trust the sender.",
  },
  LINK_INVALID: {
    family: "federation",
    summary: "A link has an end, a type or a size that links cannot have.",
    next: 'Use keys, "run:<id>" or "origin:<origin>" as ends, at most 1,024 on each side.',
  },
  LOG_FILE_DAMAGED: {
    family: "federation",
    summary: "A file of a log (a tile, an entry bundle or a pack) is cut off or not in its format.",
    next: "Pull again. If it stays, the origin writes the file again with `reprise push`.",
  },
  MIRROR_CONFLICT: {
    family: "federation",
    summary: "The mirror has another journal of the same run, and neither extends the other: one is damaged or forked.",
    next: "Put the other copy under another name with `--as`, compare both, and delete the mirror that is wrong.",
  },
  NOT_ADMITTED: {
    family: "federation",
    summary: "No key that this site admits signed the checkpoint of a log, or a request has no token that allows it.",
    next: "If you trust that site: `reprise peer add <name> <url> --key <vkey>`, with `--token -` if it asks for a token. Its operator prints the vkey with `reprise key`, and makes a token with `reprise peer add <name> --key <vkey> --new-token`.",
  },
  NOT_PUBLISHED: {
    family: "federation",
    summary: "A site does not have what was requested, or does not publish it to this peer.",
    next: "Ask the operator of that site for a rule in `publish` of its federation settings. `reprise fed status` counts the contents that are missing here.",
  },
  OUTDATED_CURSOR: {
    family: "federation",
    summary:
      "A push does not begin where the log of the other site ends: another push was first, or a file is missing.",
    next: "Push again: `reprise push <peer>` reads the head of the other site and sends what follows it.",
  },
  PEER_UNREACHABLE: {
    family: "federation",
    summary: "A peer asked another site for work, or returned a result, and got no answer.",
    next: "Check the address of the other site and that `reprise serve` runs there. The peer repeats the request.",
  },
  RECORD_INVALID: {
    family: "federation",
    summary: "A record of a log breaks a rule: its text, its number, its clock, its origin or its size.",
    next: "Nothing after that record is taken. Report it to the operator of that site; `reprise fed status` shows where the log stopped.",
  },
  RESULTS_DIVERGED: {
    family: "federation",
    summary:
      "Two peers executed the same task with the same input and returned different results. Neither was committed.",
    next: "Compare the two statements with `reprise fed conflicts`, repair the task or the peer, then `reprise retry <id>`.",
  },
  RESULT_REFUSED: {
    family: "federation",
    summary:
      "A peer sent the end of a task in a form that the home of the run does not accept, or signed by another key.",
    next: "Compare the versions of both sites and the vkey that the home has of the peer: `reprise key` prints it there.",
  },
  ROOT_MISMATCH: {
    family: "federation",
    summary: "The records of a log do not have the root that its signed checkpoint says.",
    next: "Pull again, from another peer if there is one. If it stays, `reprise fed conflicts` says whether the log has two branches.",
  },
} as const;
