// Definition: what a run follows. Workflows, graphs and flows are all definitions; the types travel with them.

/**
 * The kinds of definitions.
 *
 * @example
 * ```ts
 * import { createEngine, DefinitionKind } from "reprise";
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [] });
 * for await (const run of engine.list({ kind: DefinitionKind.graph })) console.log(run.id);
 * ```
 */
export const DefinitionKind = { workflow: "workflow", graph: "graph", flow: "flow" } as const;
/** The kind of a definition. */
export type DefinitionKind = (typeof DefinitionKind)[keyof typeof DefinitionKind];

/** Anything that can be run: what `start`, `child` and `createEngine` take. */
export interface Definition<Name extends string = string, Input = any, Output = any, Ports = any, State = any> {
  readonly kind: DefinitionKind;
  readonly name: Name;
  readonly "~types"?: { input: (value: Input) => void; output: Output; ports: Ports; state: State };
}

/** The input a definition or task takes. */
export type InputOf<D> = D extends { readonly "~types"?: { input: (value: infer I) => void } } ? I : never;
/** The output a definition or task gives. */
export type OutputOf<D> = D extends { readonly "~types"?: { output: infer O } } ? O : never;
/** The state of a graph. */
export type StateOf<D> = D extends { readonly "~types"?: { state: infer S } } ? S : never;
export type PortsOf<D> = D extends { readonly "~types"?: { ports: infer M } } ? M : never;

/** `void` input: no argument. */
export type Args<Input, Options> = [Input] extends [void]
  ? [input?: undefined, options?: Options]
  : [input: Input, options?: Options];

export type Awaitable<T> = T | Promise<T>;

/** What a journal cannot keep is refused where it is written, not when it is encoded. */
export type Data<T> = T extends ((...args: never) => unknown) | symbol | { json(): unknown } | AsyncIterable<unknown>
  ? "not data: read it inside the function and return the value"
  : unknown;
