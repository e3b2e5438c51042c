// Peer exchange: pushes to and pulls from the carriers of peers, and remembers how it went.
//
// peer-exchange.E1. A carrier is opened when it is first needed, and closed with the site. One that could not be opened is tried again.
// peer-exchange.E2. A log that the peer sent wrong is an error of that peer; the other logs of the same carrier are taken.
// peer-exchange.E3. Now and then a pull also looks for contents that were published after their records, and for new epochs: always when
//   a person asks, and every tenth time in the background.

import { isErrorCode, RepriseError, type Clock, type Random, type Timers } from "../base/index.ts";
import type { ExchangeOptions, PeerInfo, SyncReport } from "./api.ts";
import type { Carrier } from "../carriers/index.ts";
import { openCarrier } from "../carriers/index.ts";
import { OWN_LOG, type Peer } from "./check-settings.ts";
import type { Home } from "./home/home.ts";
import { firstEpoch } from "./log/origin.ts";
import type { PublicationRule } from "./sync/publish.ts";
import { pullFrom, type PulledLog } from "./sync/pull.ts";
import { pushTo, type PushedLog } from "./sync/push.ts";
import type { SyncState } from "./sync/sync-state.ts";

export interface PeerExchangeParts {
  readonly home: Home;
  readonly state: SyncState;
  readonly rules: readonly PublicationRule[];
  /** The origin of this site. */
  readonly own: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** A carrier has a log of this site that the one here does not extend. */
  readonly onOtherLog: () => void;
}

/** Where files are exchanged: a peer, or a carrier at a bare URL. */
export type Target = Pick<Peer, "name" | "token" | "pull" | "push"> & {
  readonly url: string;
  /** The name that rules know the reader by. */
  readonly reader: string;
};

export interface PullWait {
  /** Waits that long for news of the first log. */
  readonly waitMs?: number;
  /** peer-exchange.E3 */
  readonly fill?: boolean;
}

type Note = { -readonly [K in "pulledAt" | "pushedAt" | "error"]?: PeerInfo[K] };

export class PeerExchange {
  readonly #parts: PeerExchangeParts;
  readonly #carriers = new Map<string, Promise<Carrier>>();
  readonly #notes = new Map<string, Note>();

  constructor(parts: PeerExchangeParts) {
    this.#parts = parts;
  }

  /** How the exchange with a peer went: when, in any process of this site; what went wrong, in this one. */
  note(name: string): Note {
    const { state } = this.#parts;
    const [pulledAt, pushedAt] = [state.get(`pulledAt ${name}`), state.get(`pushedAt ${name}`)];
    return {
      ...(pulledAt !== undefined && { pulledAt: new Date(pulledAt) }),
      ...(pushedAt !== undefined && { pushedAt: new Date(pushedAt) }),
      ...this.#notes.get(name),
    };
  }

  async push(target: Target, options: ExchangeOptions = {}): Promise<SyncReport> {
    const { home, state, rules, own } = this.#parts;
    const logs = await this.#noted(target, "pushedAt", async () => {
      const carrier = await this.carrier(target);
      const { signal, onProgress } = options;
      const given = {
        reader: target.reader,
        rules,
        own,
        state,
        origins: this.#pushed(target),
        onProgress,
        ...(signal && { signal }),
      };
      return pushTo(home, carrier, given);
    });
    if (logs.some((log) => this.#isOtherLog(log))) this.#parts.onOtherLog();
    const error = this.#firstProblem(target, logs.map(pushProblem));
    return {
      peer: target.name,
      pulled: 0,
      pushed: sum(logs, "records"),
      contents: sum(logs, "contents"),
      ...(error && { error }),
    };
  }

  #isOtherLog({ origin, status }: PushedLog): boolean {
    return (status === "behind" || status === "forked") && firstEpoch(origin) === firstEpoch(this.#parts.own);
  }

  #pushed({ push }: Target): readonly string[] {
    const own = firstEpoch(this.#parts.own);
    return push.flatMap((glob) => (glob === OWN_LOG ? [own, `${own}/*`] : [glob]));
  }

  async pull(target: Target, options: ExchangeOptions & PullWait = {}): Promise<SyncReport> {
    const { home, state } = this.#parts;
    const { signal, onProgress, waitMs, fill = true } = options;
    const logs = await this.#noted(target, "pulledAt", async () => {
      const carrier = await this.carrier(target);
      return pullFrom(home, carrier, {
        from: target.name,
        origins: target.pull.flatMap((glob) => [glob, `${glob}/*`]),
        state,
        fill,
        journals: "all",
        onProgress,
        ...(waitMs !== undefined && { waitMs }),
        ...(signal && { signal }),
      });
    });
    const error = this.#firstProblem(target, logs.map(pullProblem));
    return {
      peer: target.name,
      pulled: sum(logs, "records"),
      pushed: 0,
      contents: sum(logs, "contents"),
      ...(error && { error }),
    };
  }

  /** peer-exchange.E2 */
  #firstProblem({ name }: Target, problems: readonly (RepriseError | undefined)[]): RepriseError | undefined {
    const error = problems.find((one) => one !== undefined);
    if (error !== undefined) this.#note(name).error = this.#errorNote(error);
    return error;
  }

  async #noted<T>({ name }: Target, moment: "pulledAt" | "pushedAt", work: () => Promise<T>): Promise<T> {
    const note = this.#note(name);
    try {
      const result = await work();
      note[moment] = new Date(this.#parts.clock.now());
      this.#parts.state.set(`${moment} ${name}`, note[moment].toISOString());
      delete note.error;
      return result;
    } catch (error) {
      note.error = this.#errorNote(error);
      throw error;
    }
  }

  #errorNote(error: unknown): NonNullable<PeerInfo["error"]> {
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    return {
      code: isErrorCode(code) ? code : "INVARIANT",
      message: String(message),
      at: new Date(this.#parts.clock.now()),
    };
  }

  #note(name: string): Note {
    const note = this.#notes.get(name) ?? {};
    this.#notes.set(name, note);
    return note;
  }

  /** peer-exchange.E1 */
  carrier({ url, token }: Pick<Target, "url" | "token">): Promise<Carrier> {
    const known = this.#carriers.get(url);
    if (known !== undefined) return known;
    const { clock, timers, random } = this.#parts;
    const opening = openCarrier(url, { clock, timers, random, ...(token !== undefined && { token }) });
    this.#carriers.set(url, opening);
    opening.catch(() => this.#carriers.delete(url));
    return opening;
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#carriers.values());
    for (const one of opened) if (one.status === "fulfilled") await one.value.close();
  }
}

function pullProblem({ origin, status, code, reason }: PulledLog): RepriseError | undefined {
  if (status === "refused")
    return new RepriseError(
      isErrorCode(code) ? code : "RECORD_INVALID",
      `The log ${origin} was refused: ${reason ?? status}`,
    );
  if (status === "forked")
    return new RepriseError("FORKED", `The log ${origin} does not continue the one that is here. Both heads are kept.`);
  if (status !== "incomplete") return undefined;
  return new RepriseError("LOG_FILE_DAMAGED", `Files of the log ${origin} are missing under its checkpoint.`);
}

function pushProblem({ origin, status }: PushedLog): RepriseError | undefined {
  if (status !== "forked") return undefined;
  return new RepriseError("FORKED", `The carrier has another log ${origin} than this site. Nothing was written.`);
}

function sum<T, K extends keyof T>(all: readonly T[], name: K): number {
  return all.reduce((total, one) => total + Number(one[name]), 0);
}
