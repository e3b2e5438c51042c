// Reads server-sent events of a response, one after another, as a browser would parse them.

export interface ReadEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: any;
}

export class SseReader implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";
  comments = 0;
  /** The id of the last event with one. */
  lastId: string | undefined;

  constructor(response: Response) {
    if (response.body === null) throw new Error(`no body: ${response.status}`);
    this.#reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next event; undefined: the response ended. */
  async next(): Promise<ReadEvent | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end !== -1) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        const event = this.#parse(block);
        if (event !== undefined) return event;
        continue;
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += value;
    }
  }

  #parse(block: string): ReadEvent | undefined {
    let [id, event, data] = [undefined as string | undefined, "message", ""];
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) this.comments += 1;
      else if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("event: ")) event = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (data === "") return undefined;
    this.lastId = id ?? this.lastId;
    return { id, event, data: JSON.parse(data) };
  }

  /** The next event that passes the test. */
  async find(test: (event: ReadEvent) => boolean): Promise<ReadEvent> {
    for (;;) {
      const event = await this.next();
      if (event === undefined) throw new Error("the response ended before the event came");
      if (test(event)) return event;
    }
  }

  /** The first event that passes each test, in whatever order they come. */
  async findAll(...tests: readonly ((event: ReadEvent) => boolean)[]): Promise<readonly ReadEvent[]> {
    const found: (ReadEvent | undefined)[] = tests.map(() => undefined);
    while (found.includes(undefined))
      await this.find((event) => {
        const index = tests.findIndex((each, at) => found[at] === undefined && each(event));
        if (index !== -1) found[index] = event;
        return index !== -1;
      });
    return found as readonly ReadEvent[];
  }

  async rest(): Promise<readonly ReadEvent[]> {
    const events: ReadEvent[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) events.push(event);
    return events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }
}
