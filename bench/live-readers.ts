// The readers of bench/live.ts: node live-readers.ts <url> <count>. Says when all are connected, and when the last one saw the end of a run.

const [url = "", count = "1"] = process.argv.slice(2);
const wanted = Number(count);
const seen = new Map<string, number>();
let ready = 0;

async function read(): Promise<void> {
  const response = await fetch(`${url}/v1/events`, { headers: { accept: "text/event-stream" } });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  ready += 1;
  if (ready === wanted) process.send?.("connected");
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const [, id] = /^data: \{"id":"(live-\d+)".*"status":"cancelled"/m.exec(block) ?? [];
      if (id === undefined) continue;
      const readers = (seen.get(id) ?? 0) + 1;
      seen.set(id, readers);
      if (readers === wanted) process.send?.({ id, at: performance.timeOrigin + performance.now() });
    }
  }
}

await Promise.all(Array.from({ length: wanted }, read));
