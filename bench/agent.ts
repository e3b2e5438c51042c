// agent: a loop of the AI SDK with tools, as a run and without Reprise, in turns. The model answers at once.

import { createEngine } from "reprise";
import type { Conversation } from "./agent-loop.ts";
import { percentile } from "./statistics.ts";
import { scaled, type Workload } from "./workload.ts";

interface Variant extends Conversation {
  /** What a figure is divided by. */
  readonly unit: "call" | "token";
  /** Conversations at once. */
  readonly atOnce: number;
  readonly rounds: number;
}

const VARIANTS: Readonly<Record<string, Variant>> = {
  calls: { unit: "call", atOnce: 1, rounds: 50, calls: 10, tokens: 20 },
  "calls at once": { unit: "call", atOnce: 50, rounds: 5, calls: 10, tokens: 20 },
  tokens: { unit: "token", atOnce: 1, rounds: 50, calls: 1, tokens: 2_000, tokenMs: 0 },
  "tokens at once": { unit: "token", atOnce: 50, rounds: 3, calls: 1, tokens: 200, tokenMs: 10 },
};

export const agentWorkload: Workload = {
  name: "agent",
  variants: Object.keys(VARIANTS),
  warmUp: 0.2,
  hasNoRate: true,
  withoutWorker: true,
  async run(rig, plan) {
    // Loaded here: the other workloads must not pay for the SDK.
    const { conversing, converseDirectly } = await import("./agent-loop.ts");
    const { unit, atOnce, rounds, ...conversation } = VARIANTS[plan.variant]!;
    await using engine = await createEngine({ store: rig.database.url, definitions: [conversing], durability: "full" });
    const [plain, durable] = [new Stopwatch(), new Stopwatch()];
    const startedAt = performance.now();
    const count = scaled(rounds, plan);
    for (let round = 0; round < count; round += 1) {
      await plain.time(atOnce, () => converseDirectly(conversation));
      await durable.time(atOnce, async () => (await engine.start(conversing, conversation)).result());
    }
    const runs = count * atOnce;
    const units = unit === "token" ? conversation.tokens * conversation.calls : conversation.calls;
    const [plainUs, durableUs] = [plain, durable].map(({ roundsMs }) => (median(roundsMs) / atOnce / units) * 1_000);
    const [plainCpuUs, durableCpuUs] = [plain, durable].map(({ cpuMs }) => (cpuMs / runs / units) * 1_000);
    return {
      runs,
      steps: runs * units,
      elapsedMs: performance.now() - startedAt,
      latenciesMs: durable.latenciesMs,
      extra: {
        plainUs: plainUs!,
        durableUs: durableUs!,
        overheadUs: durableUs! - plainUs!,
        plainCpuUs: plainCpuUs!,
        durableCpuUs: durableCpuUs!,
        overheadCpuUs: durableCpuUs! - plainCpuUs!,
      },
    };
  },
};

function median(values: readonly number[]): number {
  return percentile(values, 0.5) ?? 0;
}

/** The durations of rounds and of their conversations, and the CPU time of this process meanwhile. */
class Stopwatch {
  readonly roundsMs: number[] = [];
  readonly latenciesMs: number[] = [];
  cpuMs = 0;

  async time(atOnce: number, converse: () => Promise<unknown>): Promise<void> {
    const before = process.cpuUsage();
    const startedAt = performance.now();
    const conversations = Array.from({ length: atOnce }, async () => {
      await converse();
      this.latenciesMs.push(performance.now() - startedAt);
    });
    await Promise.all(conversations);
    this.roundsMs.push(performance.now() - startedAt);
    const { user, system } = process.cpuUsage(before);
    this.cpuMs += (user + system) / 1_000;
  }
}
