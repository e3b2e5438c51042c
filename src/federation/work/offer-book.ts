// OfferBook: the work that this site offers to its peers, in memory. A worker (federation-worker.ts) holds the lease of every item in
// it; the book decides which peer executes the item, and gives the end back to the worker, which commits it.
//
// offer-book.B1. Of the peers that may execute the label, are live, have the task and have room, the first by rendezvous of (run, command)
//   gets the offer; with a redundancy of 2, the first two.
// offer-book.B2. An offer ends once: with the end that its peer posts, when its peer does not renew it, or when the worker aborts it.
//   Every later end is late: it is kept as a statement of the peer, and changes nothing.
// offer-book.B3. A peer gets the inputs of the offers that it holds, and no other.
// offer-book.B4. With a redundancy of 2 nothing is committed before two peers ended with the same step record.
// offer-book.B5. The peer learns that its result is committed after the commit is durable.

import { RepriseError, valueKey, type Clock, type Random, type Timers } from "../../base/index.ts";
import type { Outcome, Write } from "../../kernel/index.ts";
import { stepText } from "../../receipts/index.ts";
import { ItemReturned, type RemoteCall, type RemoteTasks } from "../../worker/index.ts";
import { LivePeers } from "./live-peers.ts";
import {
  decodeEnd,
  offerOf,
  refusedEnd,
  type OfferJob,
  type Share,
  type WorkTarget,
  type Written,
} from "./offer-job.ts";
import type {
  ClaimAnswer,
  ClaimRequest,
  End,
  EndAnswer,
  EndsAnswer,
  EndsRequest,
  InputsAnswer,
  InputsRequest,
  Offer,
  RenewAnswer,
  RenewRequest,
} from "./offer.ts";
import { rankPeers } from "./rendezvous.ts";
import { taskStep, type ExecutedStep } from "./step-statement.ts";

/** Ends of the same step by two peers that differ. */
export interface DivergentStep {
  readonly run: string;
  readonly command: string;
  readonly ends: readonly { readonly peer: string; readonly statement: string }[];
}

export interface OfferBookHost {
  readonly work: ReadonlyMap<string, WorkTarget>;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Checks the statement of a peer; throws a RepriseError if it is not of this peer. */
  checkStatement(peer: string, envelope: string): ExecutedStep;
  /** offer-book.B2 */
  keepLate(peer: string, envelope: string, executed: ExecutedStep, result: string | undefined): Promise<void>;
  /** offer-book.B4 */
  onDivergence(divergent: DivergentStep): void;
  report(error: unknown): void;
}

/** Pause before an item that a peer declined is offered again. */
const DECLINED_MS = 1_000;
/** How many ended offers the book remembers, to answer a repeated end. */
const REMEMBERED = 10_000;
const MAX_OFFERS = 256;
const MAX_INPUT_CHARACTERS = 8 * 1024 * 1024;
const SWEEPS_PER_LEASE = 3;

export class OfferBook implements RemoteTasks {
  readonly #host: OfferBookHost;
  readonly #peers: LivePeers;
  readonly #jobs = new Set<OfferJob>();
  readonly #shares = new Map<string, Share>();
  /** By the token of the item. */
  readonly #unwritten = new Map<string, OfferJob>();
  /** Offers that ended without their peer, until the peer has been informed. */
  readonly #gone = new Map<string, Set<string>>();
  readonly #answers = new Map<string, Promise<EndAnswer>>();
  #cancelSweep: (() => void) | undefined;

  constructor(host: OfferBookHost) {
    this.#host = host;
    this.#peers = new LivePeers(host.clock, host.timers, host.leaseMs);
  }

  /** The peers that execute work now, by name. */
  get livePeers(): readonly string[] {
    return this.#peers.names();
  }

  // ── the worker's side ──

  execute(call: RemoteCall): Promise<unknown> {
    const target = this.#host.work.get(call.label ?? "");
    if (target === undefined)
      return Promise.reject(new ItemReturned(`No peer executes the label ${call.label}.`, DECLINED_MS));
    const written = Promise.withResolvers<Written>();
    return new Promise((resolve, reject) => {
      const job: OfferJob = {
        call,
        target,
        input: call.input === undefined ? undefined : valueKey(call.input),
        shares: new Set(),
        ends: [],
        resolve,
        reject,
        written: written.promise,
        onWritten: (how) => written.resolve(how),
        isSettled: false,
      };
      this.#jobs.add(job);
      this.#unwritten.set(call.item.token, job);
      const { abortSignal } = call.context;
      abortSignal.addEventListener("abort", () => this.#abandon(job), { once: true });
      if (abortSignal.aborted) this.#abandon(job);
      this.#peers.wake();
      this.#scheduleSweep();
    });
  }

  wrote(write: Write, outcome: Outcome): void {
    if (write.write !== "end-item" && write.write !== "return-item") return;
    const job = this.#unwritten.get(write.token);
    if (job === undefined) return;
    this.#unwritten.delete(write.token);
    const { status } = outcome as { readonly status: string };
    job.onWritten(status !== "committed" ? "lost" : write.write === "end-item" ? "committed" : "returned");
  }

  #abandon(job: OfferJob): void {
    this.#unwritten.delete(job.call.item.token);
    job.onWritten("lost");
    if (this.#settle(job)) this.#keepEnds(job);
  }

  /** Ends that waited for that of another peer. */
  #keepEnds({ ends }: OfferJob): void {
    for (const { peer, statement, executed, result } of ends)
      this.#host.keepLate(peer, statement, executed, result).catch((error: unknown) => this.#host.report(error));
  }

  /** The offers of the job that are still out are gone. False: it was settled before. */
  #settle(job: OfferJob): boolean {
    if (job.isSettled) return false;
    job.isSettled = true;
    this.#jobs.delete(job);
    for (const share of job.shares) this.#drop(share);
    if (this.#jobs.size === 0) {
      this.#cancelSweep?.();
      this.#cancelSweep = undefined;
    }
    return true;
  }

  #drop(share: Share): void {
    const { id, peer } = share;
    this.#shares.delete(id);
    share.job.shares.delete(share);
    const gone = this.#gone.get(peer);
    if (gone === undefined) this.#gone.set(peer, new Set([id]));
    else gone.add(id);
    this.#peers.wake(peer);
  }

  #scheduleSweep(): void {
    if (this.#cancelSweep !== undefined || this.#jobs.size === 0) return;
    const { timers, leaseMs } = this.#host;
    this.#cancelSweep = timers.set(
      Math.ceil(leaseMs / SWEEPS_PER_LEASE),
      () => {
        this.#cancelSweep = undefined;
        this.#sweep();
        this.#scheduleSweep();
      },
      { ref: false },
    );
  }

  #sweep(): void {
    const now = this.#host.clock.monotonic();
    for (const share of [...this.#shares.values()]) {
      if (share.until > now || !this.#settle(share.job)) continue;
      share.job.reject(new ItemReturned(`${share.peer} did not renew the offer.`));
      this.#keepEnds(share.job);
    }
    // Offers that waited for a peer that is no longer live.
    if (this.#jobs.size > 0) this.#peers.wake();
  }

  // ── the peers' side ──

  async claim(peer: string, { tasks, free, waitMs = 0 }: ClaimRequest, signal: AbortSignal): Promise<ClaimAnswer> {
    this.#checkGrant(peer);
    return this.#peers.whilePolling(peer, tasks, free, signal, waitMs, (isLast) => this.#answerClaim(peer, isLast));
  }

  /** Undefined: nothing to say yet. */
  #answerClaim(peer: string, isLast: boolean): ClaimAnswer | undefined {
    const offers = this.#take(peer);
    const gone = [...(this.#gone.get(peer) ?? [])];
    if (offers.length === 0 && gone.length === 0 && !isLast) return undefined;
    this.#gone.delete(peer);
    return { offers, gone, leaseMs: this.#host.leaseMs };
  }

  /** offer-book.B1 */
  #take(peer: string): readonly Offer[] {
    const offers: Offer[] = [];
    for (const job of this.#jobs) {
      if (offers.length === MAX_OFFERS || !this.#peers.canTake(peer)) break;
      if (!this.#isFor(job, peer)) continue;
      const share: Share = {
        id: this.#host.random.token(),
        peer,
        job,
        until: this.#host.clock.monotonic() + this.#host.leaseMs,
      };
      job.shares.add(share);
      this.#shares.set(share.id, share);
      this.#peers.took(peer);
      offers.push(offerOf(share));
    }
    return offers;
  }

  #isFor({ call, target, shares, ends }: OfferJob, peer: string): boolean {
    const { runId, item, name } = call.item;
    const busy = new Set([...shares, ...ends].map((one) => one.peer));
    const missing = target.redundancy - busy.size;
    if (missing <= 0 || busy.has(peer) || !target.peers.includes(peer)) return false;
    const able = target.peers.filter((one) => !busy.has(one) && this.#peers.canTake(one, name));
    return rankPeers(runId, item, able).slice(0, missing).includes(peer);
  }

  renew(peer: string, { offers, free }: RenewRequest): RenewAnswer {
    this.#checkGrant(peer);
    this.#peers.seen(peer, free);
    const until = this.#host.clock.monotonic() + this.#host.leaseMs;
    const gone = offers.filter((id) => {
      const share = this.#find(peer, id);
      if (share !== undefined) share.until = until;
      return share === undefined;
    });
    for (const id of gone) this.#gone.get(peer)?.delete(id);
    return { gone };
  }

  /** offer-book.B3. As many as an answer holds, one at least. */
  inputs(peer: string, { keys }: InputsRequest): InputsAnswer {
    const wanted = new Set(keys);
    const texts: Record<string, string> = {};
    let left = MAX_INPUT_CHARACTERS;
    for (const { peer: holder, job } of this.#shares.values()) {
      const { input: text } = job.call;
      if (holder !== peer || text === undefined || job.input === undefined || !wanted.has(job.input)) continue;
      texts[job.input] = text;
      if ((left -= text.length) <= 0) break;
    }
    if (keys.length > 0 && left === MAX_INPUT_CHARACTERS)
      throw new RepriseError("NOT_ADMITTED", `${peer} holds no offer with one of these inputs: ${keys.join(", ")}.`);
    return { texts };
  }

  async ends(peer: string, { ends }: EndsRequest): Promise<EndsAnswer> {
    this.#checkGrant(peer);
    const answers = ends.map((end) => this.#endOnce(peer, end).catch(refusalOf));
    return { answers: await Promise.all(answers) };
  }

  /** A repeated end has the answer of the first. */
  #endOnce(peer: string, request: End): Promise<EndAnswer> {
    const name = `${peer} ${request.offer}`;
    const known = this.#answers.get(name);
    if (known !== undefined) return known;
    const answer = this.#end(peer, request);
    this.#answers.set(name, answer);
    // A refused end may be posted again.
    answer.catch(() => this.#answers.delete(name));
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= REMEMBERED) break;
      this.#answers.delete(oldest);
    }
    return answer;
  }

  async #end(peer: string, request: End): Promise<EndAnswer> {
    const share = this.#find(peer, request.offer);
    if ("declined" in request) {
      if (share === undefined) return { status: "late" };
      this.#settleFor(share);
      this.#keepEnds(share.job);
      share.job.reject(new ItemReturned(`${peer} declined: ${request.declined}`, DECLINED_MS));
      return this.#answerFor(share.job);
    }
    const { statement, result, error, retryAfterMs } = request;
    const executed = this.#host.checkStatement(peer, statement);
    const late = async (): Promise<EndAnswer> => {
      await this.#host.keepLate(peer, statement, executed, result);
      return { status: "late" };
    };
    if (share === undefined) return late();
    const { job } = share;
    const step = stepText(taskStep(job.call.item.item, job.call.item.name, job.call.input, { result, error }));
    if (step !== stepText(executed.step) || executed.run !== job.call.item.runId)
      throw refusedEnd(peer, job, "its statement is about another step or another result");
    const value = decodeEnd(peer, job, result, error, retryAfterMs);
    if (error !== undefined) {
      this.#settleFor(share);
      job.reject(value);
      this.#keepEnds(job);
    } else {
      job.ends.push({ peer, statement, executed, step, result });
      this.#release(share);
      // offer-book.B4
      if (job.ends.length < job.target.redundancy) return { status: "waiting" };
      this.#settle(job);
      this.#finish(job, value);
    }
    const answer = await this.#answerFor(job);
    return answer.status === "late" ? late() : answer;
  }

  #finish(job: OfferJob, value: unknown): void {
    if (job.ends.every(({ step }) => step === job.ends[0]?.step)) return job.resolve(value);
    const { runId: run, item: command } = job.call.item;
    this.#host.onDivergence({
      run,
      command,
      ends: job.ends.map(({ peer, statement }) => ({ peer, statement })),
    });
    const peers = job.ends.map(({ peer }) => peer).join(" and ");
    job.reject(
      new RepriseError(
        "RESULTS_DIVERGED",
        `${peers} executed ${command} of run ${run} (task ${job.call.item.name}) with the same input and returned different results, so neither was committed.`,
      ),
    );
  }

  /** Ends the job on behalf of this share, whose peer knows it. */
  #settleFor(share: Share): void {
    this.#release(share);
    this.#settle(share.job);
  }

  #release(share: Share): void {
    this.#shares.delete(share.id);
    share.job.shares.delete(share);
    this.#peers.freed(share.peer);
  }

  async #answerFor(job: OfferJob): Promise<EndAnswer> {
    const how = await job.written;
    if (how === "lost") return { status: "late" };
    return { status: how === "committed" ? "committed" : "retried" };
  }

  #find(peer: string, id: string): Share | undefined {
    const share = this.#shares.get(id);
    return share?.peer === peer ? share : undefined;
  }

  #checkGrant(peer: string): void {
    for (const { peers } of this.#host.work.values()) if (peers.includes(peer)) return;
    throw new RepriseError(
      "NOT_ADMITTED",
      `${peer} may not execute work of this site. Name it in \`work\`: \`work: { <label>: "${peer}" }\`.`,
    );
  }

  /** Answers every poll; nothing is offered any more. */
  close(): void {
    this.#cancelSweep?.();
    this.#peers.close();
  }
}

/** The peer is wrong about this end, and not about the others. */
function refusalOf(error: unknown): { readonly refused: string } {
  if (error instanceof RepriseError && error.code === "RESULT_REFUSED") return { refused: error.message };
  throw error;
}
