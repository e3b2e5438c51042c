// Inspector client: a debugger for tests, over the protocol that Chrome and VS Code speak.

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, any>;
  readonly result?: Record<string, any>;
  readonly error?: { readonly message: string };
}

/** A frame of the paused process. */
export interface CallFrame {
  readonly callFrameId: string;
  readonly functionName: string;
  readonly location: { readonly scriptId: string; readonly lineNumber: number };
}

export class InspectorClient implements Disposable {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, PromiseWithResolvers<Record<string, any>>>();
  readonly #pauses: (readonly CallFrame[])[] = [];
  readonly #waiting: PromiseWithResolvers<readonly CallFrame[]>[] = [];
  readonly #urls = new Map<string, string>();
  #sent = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(String(data)) as Answer));
  }

  /** Attaches, and lets the process continue that waits for a debugger. */
  static async attach(url: string): Promise<InspectorClient> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", reject, { once: true });
    });
    const client = new InspectorClient(socket);
    await client.send("Debugger.enable");
    return client;
  }

  #receive({ id, method, params, result = {}, error }: Answer): void {
    if (id !== undefined) {
      const answer = this.#answers.get(id);
      if (error === undefined) answer?.resolve(result);
      else answer?.reject(new Error(error.message));
    } else if (method === "Debugger.paused") {
      const frames = params?.["callFrames"] as readonly CallFrame[];
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#pauses.push(frames);
      else waiting.resolve(frames);
    } else if (method === "Debugger.scriptParsed") this.#urls.set(params?.["scriptId"], params?.["url"]);
  }

  send(method: string, params: object = {}): Promise<Record<string, any>> {
    const id = (this.#sent += 1);
    const answer = Promise.withResolvers<Record<string, any>>();
    this.#answers.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }

  /** The frames of the next pause, the innermost first. */
  paused(): Promise<readonly CallFrame[]> {
    const frames = this.#pauses.shift();
    if (frames !== undefined) return Promise.resolve(frames);
    const waiting = Promise.withResolvers<readonly CallFrame[]>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }

  /** The file that the frame is in. */
  urlOf({ location }: CallFrame): string | undefined {
    return this.#urls.get(location.scriptId);
  }

  /** The value of an expression in a frame. */
  async evaluate(frame: CallFrame, expression: string): Promise<unknown> {
    const { callFrameId } = frame;
    const { result } = await this.send("Debugger.evaluateOnCallFrame", {
      callFrameId,
      expression,
      returnByValue: true,
    });
    return (result as { readonly value?: unknown }).value;
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}
