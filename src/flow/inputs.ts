// Inputs: the values a ready node is given, out of what has arrived for it.

import { decode, RepriseError } from "../base/index.ts";
import type { ArrivalKind, NodeInput } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { FlowBody } from "./definition.ts";
import { SKIPPED, type ValuesByNode } from "./evaluate.ts";

/** An arrival with the entry that caused it, decoded once however many arrivals name it. */
export interface DecodedArrival {
  readonly target: string;
  readonly edge: string;
  readonly index: number;
  readonly kind: ArrivalKind;
  readonly data: Readonly<Record<string, unknown>>;
}

export function decodeInputs(inputs: readonly NodeInput[]): readonly DecodedArrival[] {
  const decoded = new Map<number, DecodedArrival["data"]>();
  return inputs.map(({ target, edge, index, kind, seq, data }) => {
    let value = decoded.get(seq);
    if (value === undefined) decoded.set(seq, (value = decode(data) as DecodedArrival["data"]));
    return { target, edge, index, kind, data: value };
  });
}

/** The value of every edge into `target`: SKIPPED where a skip came, and for a guard whether it holds. */
export function valuesFrom(body: FlowBody, target: string, arrived: readonly DecodedArrival[]): ValuesByNode {
  const { regions, nodes } = body;
  const known = new Map<string, unknown>();
  for (const arrival of arrived) {
    if (arrival.target !== target) continue;
    const { edge, kind, data } = arrival;
    const source = nodes.get(edge);
    if (source?.work.kind === "when") {
      // The arrival says whether this node's side was taken; which side that is, the node knows.
      const side = nodes.get(target)?.guard?.side;
      known.set(edge, kind === "skip" ? SKIPPED : side);
    } else if (kind === "skip") known.set(edge, SKIPPED);
    else if (regions.get(edge)?.region.head.work.kind === "barrier")
      known.set(edge, spreadListFrom(body, edge, arrived));
    else known.set(edge, valueInEntry(edge, data));
  }
  return known;
}

/** What an entry says a node's value is: its own, or one derived behind it. */
export function valueInEntry(node: string, data: Readonly<Record<string, unknown>>): unknown {
  if (node === "input" && "definition" in data) return data["input"];
  const kept = data["kept"] as Readonly<Record<string, unknown>> | undefined;
  return kept !== undefined && Object.hasOwn(kept, node) ? kept[node] : data["result"];
}

/** The list a barrier stands for, by index, settled or not; SKIPPED when its spread was. */
export function spreadListFrom({ nodes }: FlowBody, barrier: string, arrived: readonly DecodedArrival[]): unknown {
  const work = nodes.get(barrier)?.work;
  const settle = work?.kind === "barrier" && work.settle;
  const items = arrived.filter(({ target }) => target === barrier);
  if (items[0]?.kind === "skip") return SKIPPED;
  const list = Array.from<unknown>({ length: items.length });
  for (const { index, kind, data } of items) {
    if (index < 0 || index >= items.length)
      throw new RepriseError("STORE_CORRUPT", `The items of ${barrier} have a gap; run reprise doctor.`);
    const value = kind === "failure" ? entryData.errorOf(data) : data["result"];
    if (!settle) list[index] = value;
    else list[index] = kind === "failure" ? { status: "rejected", reason: value } : { status: "fulfilled", value };
  }
  return list;
}
