// Picture: what definitions and runs look like: nodes and edges with their state, and the timeline. The command line, the API and, through
// it, the dashboard use the same models (src/contract).

export { pictureOfFlow, pictureOfGraph } from "./definition-picture.ts";
export { spreadText, stateText } from "./flow-text.ts";
export { readRunPicture, type Drawable } from "./read-picture.ts";
export { readTimeline, type TimelinePage, type TimelineOptions } from "./read-timeline.ts";
export { errorLine, thrownErrorOf } from "./thrown-error.ts";
