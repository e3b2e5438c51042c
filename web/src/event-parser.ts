// Event parser: Server-Sent Events from chunks of text.

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** Calls `take` for every complete event; chunks may be cut anywhere. */
export function createEventParser(take: (event: ServerEvent) => void): { readonly push: (chunk: string) => void } {
  let rest = "";
  let event = "";
  let id: string | undefined;
  let data: string[] = [];

  const readLine = (line: string): void => {
    if (line === "") {
      if (data.length > 0 || event !== "") take({ event: event || "message", data: data.join("\n"), id });
      event = "";
      id = undefined;
      data = [];
      return;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id") id = value;
  };

  return {
    push: (chunk) => {
      const lines = (rest + chunk).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) readLine(line);
    },
  };
}
