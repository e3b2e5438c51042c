// Command ids: how commands are named, and what a name tells.
//
//   Task(3)                  the fourth task that a workflow requested
//   Node(3.0)                the first item of step 3 of a graph
//   Node(3.0)#1/Task(0)      the first task that the second attempt of this node requested
//   Node(3.0)~1#0/Task(0)    the same in the second epoch of the run (retry-record.V4)

/** The prefix of the commands that one attempt of a node requests ends with this. */
const ATTEMPT = "#";

/** Whether the code of a node requested the command. */
export function isInNode(command: string): boolean {
  return command.includes(ATTEMPT);
}

/** The 3 of `Task(3)`. */
export function commandSequenceOf(command: string): number {
  return Number(command.slice(command.lastIndexOf("(") + 1, -1));
}

/** `Node(3.0)#1/` of `Node(3.0)#1/Task(0)`; empty outside nodes. */
export function nodePrefixOf(command: string): string {
  return command.slice(0, command.lastIndexOf("/") + 1);
}

/** `Node(3.1)` of `Node(3.1)~1#0/Promise(0)`. */
export function nodeCommandOf(command: string): string {
  return command.slice(0, command.indexOf(")") + 1);
}

/** Without the epoch and the attempt of a node: the same for every attempt. */
export function stableCommandOf(command: string): string {
  return isInNode(command) ? command.replace(/(?:~\d+)?#\d+\//, "/") : command;
}
