// The program of the test over three processes: a film of frames that only sites with the label render.

import { task, workflow, type TaskContext } from "reprise";

export interface Frame {
  readonly film: string;
  readonly n: number;
  /** The function waits until the test lets it end. */
  readonly held?: boolean;
  /** The first attempt fails. */
  readonly flaky?: boolean;
}

/** What the sites of the test differ in: where frames are rendered. */
export function programAt(onRender: (ctx: TaskContext, frame: Frame) => unknown) {
  const render = task(
    "render",
    { label: "gpu", retry: { maxAttempts: 3, baseDelay: "1 ms" } },
    async (ctx, frame: Frame) => {
      await onRender(ctx, frame);
      if (frame.flaky === true && ctx.attempt === 1) throw new Error(`frame ${frame.n} is blurred`);
      return { film: frame.film, pixels: frame.n * frame.n };
    },
  );
  const film = workflow("film", async (ctx, frames: readonly Frame[]) => {
    const title = await ctx.run("title", () => `${frames.length} frames`);
    const rendered = await Promise.all(frames.map((frame) => ctx.task(render, frame)));
    return { title, pixels: rendered.reduce((sum, { pixels }) => sum + pixels, 0) };
  });
  return { film, definitions: [render, film] };
}
