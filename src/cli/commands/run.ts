// Run: the commands init, dev, worker, serve and run.

import type { Command } from "commander";
import { action, collect, examples, helpNotes, positiveNumber, wholeNumber } from "../command.ts";
import type { DevOptions } from "../dev.ts";
import type { GlobalOptions } from "../global-options.ts";
import type { ServeCommandOptions } from "../serve.ts";
import type { WorkerOptions } from "../worker.ts";

const FILE = "module whose exported definitions and tasks are registered";

export function addRunCommands(program: Command): void {
  program.commandsGroup("Run:");

  program
    .command("init")
    .description("Create a small project with a workflow and its test")
    .argument("[folder]", "project folder; created if it does not exist", ".")
    .addHelpText("after", examples("init my-app", "init"))
    .action(
      action(async (folder: string, options: GlobalOptions) => (await import("../init.ts")).init(folder, options)),
    );

  program
    .command("dev")
    .description("Run a worker that restarts on file changes, prints run events and serves the dashboard")
    .argument("<file>", FILE)
    .option("--port <number>", "port of the dashboard (default: 7420, or a free one if that is taken)", wholeNumber)
    .option("--no-dashboard", "listen on no port")
    .addHelpText("after", examples("dev workflows.ts", "dev workflows.ts --store sqlite:try.db"))
    .action(action(async (file: string, options: DevOptions) => (await import("../dev.ts")).dev(file, options)));

  program
    .command("dev-worker", { hidden: true })
    .argument("<file>")
    .action(
      action(async (file: string, options: GlobalOptions) =>
        (await import("../dev-worker.ts")).devWorker(file, options),
      ),
    );

  program
    .command("worker")
    .description("Run a worker until SIGTERM or Ctrl-C")
    .argument("<file>", FILE)
    .option("--concurrency <count>", "maximum tasks and operations running at once (default: 256)", positiveNumber)
    .option("--queues <names>", "comma-separated queues to claim work from (default: all)", collect)
    .option("--labels <names>", "comma-separated labels to claim, besides work without a label", collect)
    .option(
      "--lease <duration>",
      "lease duration: how long before another worker takes over a dead worker's work (default: 10 s)",
    )
    .option(
      "--memory <size>",
      "memory for the runs that the worker keeps between their steps, such as 64MiB (default: 256 MiB)",
    )
    .option("--grace <duration>", "how long running steps may take to finish during shutdown", "30 s")
    .option("--events", "print a line for every run event")
    .addHelpText(
      "after",
      examples(
        "worker order.ts --store sqlite:shop.db",
        "worker order.ts --concurrency 64 --queues mail,default --json",
        "worker order.ts --labels gpu,eu --memory 64MiB",
      ),
    )
    .action(
      action(async (file: string, options: WorkerOptions) => (await import("../worker.ts")).worker(file, options)),
    );

  program
    .command("serve")
    .description("Serve the HTTP API and the dashboard; in the folder of a federated site, also answer other sites")
    .option("--port <number>", "port to listen on; 0: any free port", wholeNumber, 7420)
    .option(
      "--host <address>",
      "address to listen on; anything but loopback needs --expose, tokens and TLS",
      "127.0.0.1",
    )
    .option("--expose", "let other machines reach the API")
    .option("--tls-cert <file>", "certificate (PEM); with --tls-key, connections are encrypted")
    .option("--tls-key <file>", "private key of the certificate (PEM)")
    .option("--insecure", "listen without TLS on an address that other machines reach, such as behind a proxy")
    .option("--origin <url>", "address that people use, such as https://runs.example.org, if a proxy is in front")
    .option("--code <file>", "module with the definitions to start, replay and verify, and the tasks offered to peers")
    .option("--worker", "also execute runs of the code")
    .option("--tokens <file>", "file of the tokens (default: tokens.json in the home folder)")
    .option("--no-dashboard", "serve the API without the dashboard")
    .option("--no-sync", "of a federated site: do not pull from and push to peers")
    .addHelpText(
      "after",
      examples(
        "serve",
        "serve --code order.ts --worker",
        "serve --host 0.0.0.0 --expose --tls-cert site.pem --tls-key site.key",
        "serve --port 0 --no-sync",
      ),
    )
    .addHelpText(
      "after",
      helpNotes(
        "\nOf a federated site, the log is the same for all readers and tells nothing; a peer with a token also gets what rules publish.",
      ),
    )
    .action(action(async (options: ServeCommandOptions) => (await import("../serve.ts")).serve(options)));

  program
    .command("run")
    .description("Start a run, execute it and print its output")
    .argument("<file>", FILE)
    .argument("<workflow>", "name of the workflow, graph or flow")
    .argument("[input]", "input as JSON")
    .option("--id <id>", "run id; the same id and input return the same run")
    .option("--input-file <file>", "read the input from a file; - reads standard input")
    .option("--tag <tag>", "comma-separated tags", collect)
    .option("--priority <number>", "higher priority starts first", wholeNumber)
    .option("--delay <duration>", "start the run after this delay")
    .option("--deadline <duration>", "maximum duration of the run")
    .option("--budget <amounts>", "what the run may cost: 2 (dollars), or usd=2,tokens=100000")
    .option("--detach", "start the run, print its id and leave the work to workers")
    .addHelpText(
      "after",
      examples(
        "run order.ts order '{\"cents\":4990}' --id order-7",
        "run order.ts order '{\"cents\":4990}' --detach",
        "run order.ts order --input-file order.json",
        "run order.ts order --json | jq .output",
      ),
    )
    .action(
      action(async (file: string, name: string, input: string | undefined, options: GlobalOptions) =>
        (await import("../run.ts")).run(file, name, input, options),
      ),
    );
}
