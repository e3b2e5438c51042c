// Federation: the commands peer, push, head, snapshot, fed, archive and erase.

import type { Command } from "commander";
import { action, collect, examples, helpNotes } from "../command.ts";
import type { FedOptions, ResolveOptions } from "../fed.ts";
import type { EraseOptions, HistoryOptions } from "../history.ts";
import type { PeerAddOptions } from "../peer.ts";
import type { PushOptions } from "../push.ts";
import type { SnapshotOptions } from "../snapshot.ts";
import type { GlobalOptions } from "../global-options.ts";

export function addFederationCommands(program: Command): void {
  program.commandsGroup("Federation:");
  addPeerCommands(program);

  program
    .command("push")
    .description("Send the records and published contents of this site to peers or a carrier")
    .argument("[peer]", "name of a peer, or the URL of a carrier (default: every peer with push)")
    .addHelpText("after", examples("push", "push hub", "push /mnt/backup/history"))
    .action(
      action(async (peer: string | undefined, options: PushOptions) =>
        (await import("../push.ts")).push(peer, options),
      ),
    );

  program
    .command("head")
    .description("Print the signed head of this site's log; published anywhere, it keeps history from being rewritten")
    .addHelpText("after", examples("head", "head > head-monday.txt"))
    .action(action(async (options: GlobalOptions) => (await import("../fed.ts")).head(options)));

  addSnapshotCommands(program);
  addFedCommands(program);

  program
    .command("archive")
    .description("Put journals, statements and the log of this site on a carrier, for good")
    .argument("[carrier]", "folder or URL, such as s3://bucket/prefix (default: `archive` in federation.json)")
    .addHelpText("after", examples("archive /mnt/archive", "archive s3://bucket/shop"))
    .addHelpText("after", helpNotes("\nAfterwards `reprise prune --archived` deletes what the carrier has."))
    .action(
      action(async (carrier: string | undefined, options: HistoryOptions) =>
        (await import("../history.ts")).archive(carrier, options),
      ),
    );

  program
    .command("erase")
    .description("Delete the contents of a run, or one content, on every site, for good")
    .argument("<what>", "id of a run of this site, or the key of a content")
    .requiredOption("--reason <text>", "why; a record of the log keeps it")
    .option("--all", "of a run: also its claim and statement")
    .option("--yes", "skip the confirmation")
    .addHelpText(
      "after",
      examples('erase order-7 --reason "request of the customer"', "erase 6232d194…4b41 --reason leaked --yes"),
    )
    .action(
      action(async (what: string, options: EraseOptions) => (await import("../history.ts")).erase(what, options)),
    );
}

function addPeerCommands(program: Command): void {
  const peer = program
    .command("peer")
    .helpCommand(false)
    .description("Add, remove or list the sites that this one exchanges records with")
    .addHelpText("after", examples("peer add hub https://hub.example.com --key <vkey> --push", "peer list"));

  peer
    .command("add")
    .description("Admit another site, or change what is known about it")
    .argument("<name>", "name of the site here")
    .argument("[url]", "folder or URL of its files (default: none, it connects to this site)")
    .requiredOption("--key <vkey>", "what `reprise key` prints there")
    .option("--token <token>", "secret that both sites know; - reads it from standard input")
    .option("--new-token", "make a token and print it once, for the other site")
    .option("--push", "send it the records of this site")
    .option("--pull <origin>", "origins to take from it; * is every admitted one (default: its own)", collect)
    .option("--grant <grant>", "let it erase contents of other sites: erase", collect)
    .option("--trust-memo", "reuse results of its pure steps; one in twenty is computed anyway and compared")
    .addHelpText(
      "after",
      examples(
        "peer add hub https://hub.example.com --key <vkey> --token - --push",
        "peer add edge --key <vkey> --new-token",
        "peer add disk /mnt/usb/edge --key <vkey>",
      ),
    )
    .addHelpText(
      "after",
      helpNotes("\nThe peer is written to federation.json in the home folder. What it may read is in `publish` there."),
    )
    .action(
      action(async (name: string, url: string | undefined, options: PeerAddOptions) =>
        (await import("../peer.ts")).addPeer(name, url, options),
      ),
    );

  peer
    .command("remove")
    .description("Forget a site; its records that are here stay")
    .argument("<peer>", "name of the site")
    .addHelpText("after", examples("peer remove hub"))
    .action(
      action(async (name: string, options: GlobalOptions) => (await import("../peer.ts")).removePeer(name, options)),
    );

  peer
    .command("list")
    .description("List the sites that this one knows")
    .addHelpText("after", examples("peer list", "peer list --json"))
    .action(action(async (options: GlobalOptions) => (await import("../peer.ts")).listPeers(options)));
}

function addSnapshotCommands(program: Command): void {
  const snapshot = program
    .command("snapshot")
    .helpCommand(false)
    .description("Name what this site knows now, and compare it with what it knew before")
    .addHelpText("after", examples("snapshot create", "snapshot list", "snapshot diff <snapshot> <other>"));
  const KEY = "id of a snapshot, or its first digits";

  snapshot
    .command("create")
    .description("Take a snapshot of all logs of this site; equal logs give equal ids")
    .addHelpText("after", examples("snapshot create", "snapshot create --json"))
    .action(action(async (options: SnapshotOptions) => (await import("../snapshot.ts")).createSnapshot(options)));

  snapshot
    .command("list")
    .description("List the snapshots of this site, newest first")
    .addHelpText("after", examples("snapshot list"))
    .action(action(async (options: SnapshotOptions) => (await import("../snapshot.ts")).listSnapshots(options)));

  snapshot
    .command("show")
    .description("Show the heads and the state hash of a snapshot")
    .argument("<snapshot>", KEY)
    .addHelpText("after", examples("snapshot show 3f02"))
    .action(
      action(async (id: string, options: SnapshotOptions) =>
        (await import("../snapshot.ts")).showSnapshot(id, options),
      ),
    );

  snapshot
    .command("diff")
    .description("List what is in one snapshot and not in another")
    .argument("<snapshot>", KEY)
    .argument("[later]", "the other snapshot (default: now)")
    .addHelpText("after", examples("snapshot diff 3f02", "snapshot diff 3f02 a911 --json"))
    .action(
      action(async (before: string, after: string | undefined, options: SnapshotOptions) =>
        (await import("../snapshot.ts")).diffSnapshots(before, after, options),
      ),
    );
}

function addFedCommands(program: Command): void {
  const fed = program
    .command("fed")
    .helpCommand(false)
    .description("Switch federation on or off for a store, and inspect and repair the home")
    .addHelpText("after", examples("fed on", "fed status", "fed conflicts"));

  for (const [name, description] of [
    ["on", "Record every run of the store that ends from now on; older ones are added as found"],
    ["off", "Stop recording ended runs; what the log has stays"],
  ] as const)
    fed
      .command(name)
      .description(description)
      .addHelpText("after", examples(`fed ${name}`))
      .action(action(async (options: FedOptions) => (await import("../fed.ts")).switchFederation(name, options)));

  fed
    .command("status")
    .description("Show logs, peers, waiting runs and conflicts")
    .addHelpText("after", examples("fed status", "fed status --json"))
    .action(action(async (options: FedOptions) => (await import("../fed.ts")).status(options)));

  fed
    .command("conflicts")
    .description("List histories and contents that contradict each other, with the evidence")
    .option("--all", "include resolved ones")
    .addHelpText("after", examples("fed conflicts", "fed conflicts --all --json"))
    .action(
      action(async (options: FedOptions & { readonly all?: boolean }) =>
        (await import("../fed.ts")).conflicts(options),
      ),
    );

  fed
    .command("resolve")
    .description("Decide a conflict")
    .argument("<conflict>", "number from `fed conflicts`")
    .option("--as <text>", "how it was decided, for the record", "by hand")
    .addHelpText("after", examples("fed resolve 3", 'fed resolve 3 --as "the site was restored from a backup"'))
    .action(
      action(async (conflict: string, options: ResolveOptions) =>
        (await import("../fed.ts")).resolve(conflict, options),
      ),
    );

  fed
    .command("rebuild")
    .description("Drop what is derived from logs and contents, and compute it again")
    .addHelpText("after", examples("fed rebuild"))
    .action(action(async (options: FedOptions) => (await import("../fed.ts")).rebuild(options)));

  fed
    .command("gc")
    .description("Delete contents that nothing needs and that can be had again")
    .option("--max-bytes <size>", 'also delete contents of other sites, oldest first, until this fits: "2 GB"')
    .addHelpText("after", examples("fed gc", 'fed gc --max-bytes "2 GB"'))
    .action(
      action(async (options: FedOptions & { readonly maxBytes?: string }) => (await import("../fed.ts")).gc(options)),
    );
}
