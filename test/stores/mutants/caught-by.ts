// Caught by: the cases that must fail on each mutant. Every case is named at least once, so each is known to be able to fail. A new
// case needs a mutant that it catches.
//
// Running all cases on all mutants would take minutes, and a mutant that breaks everything would prove nothing about a case.

export const CAUGHT_BY: Readonly<Record<string, readonly string[]>> = {
  "a key is never held": [
    "a key is reserved once, and its repetition gets the recorded answer",
    "of several connections that reserve a key at once, one gets it",
  ],
  "an answer is not recorded": ["a key is reserved once, and its repetition gets the recorded answer"],
  "a key does not know its body": ["a key with another body is refused, before and after its answer"],
  "a key is held for a day": ["a reservation whose process died is taken over when its time is over"],
  "a released key is forgotten": ["a released key is free, or for the same request only"],
  "a released key stays reserved": ["a released key is free, or for the same request only"],
  "old answers are not deleted": ["answers are kept for a day, then the key is free and a sweep deletes them"],
  "the token of a turn is not checked": [
    "a commit with a wrong token writes nothing anywhere",
    "a rejected commit writes no chunk",
    "a rejected commit sends no message",
    "the token of one run is void for another",
    "rejected writes of a batch do not affect the others",
    "a rejected commit adds no runtime",
  ],
  "the token of an item is not checked": [
    "a write that is rejected frees no slot for a refill",
    "an item ends once: afterwards its token and every other token is void",
  ],
  "finished items do not fence the commit": [
    "one stale finished item rejects the whole commit, the other finished items included",
    "an item that another worker took over rejects the commit of the worker that lost it",
  ],
  "the head of a commit is not checked": ["a wrong head with the right token returns conflict and writes nothing"],
  "the chain of a commit is not checked": [
    "a commit with another chain than the run's returns conflict and writes nothing",
  ],
  "a repeated commit is not recognized": [
    "a repeated commit returns already_committed and writes nothing twice",
    "a repeated commit is recognized after the run has continued",
  ],
  "every commit returns committed": [
    "the token of a returned turn is void",
    "a rejected commit does not change the run",
  ],
  "a rejected write rejects the rest of its batch": [
    "the results of one run in one batch all arrive, except the rejected ones",
  ],
  "the writes of a batch are applied in reverse": ["the writes of a batch are applied in order"],
  "a batch returns one outcome too many": ["an empty batch returns an empty list"],
  "a commit with an expired lease is rejected": [
    "a worker with an expired lease can commit until another worker takes over",
  ],
  "a turn returns committed without being written": ["the token of one run is void for another"],
  "a release forgets what arrived since the last read (lost wake-up)": [
    "a message that arrives while the turn is held makes the turn due",
    "a message that arrives while the turn is held, before a commit that holds on makes the turn due",
    "a message that arrives just before the releasing commit is sent makes the turn due",
    "a timer that becomes due while the turn is held arrives and makes the turn due",
  ],
  "a turn is due only before its first message (lost wake-up)": [
    "a message that arrives in the batch of the releasing commit, before it makes the turn due",
    "a message that arrives in the batch of the releasing commit, after it makes the turn due",
    "a message that arrives while the releasing commit is in flight makes the turn due",
    "a message that arrives after the turn was given back makes the turn due",
  ],
  "more is never true": ["of two children with one id in one commit the first is started"],
  "more is always true": ["`more` is true exactly when there are unread messages"],
  "nothing is ever read": ["a turn is claimed with its unread messages, and a commit deletes those it has read"],
  "a turn is never released": [
    "a commit without entries changes only the turn",
    "a held turn cannot be claimed, and a turn without unread messages is not due",
    "a claimed run has its head, chain and read messages",
  ],
  "a turn is always released": ["a dropped timer never fires"],
  "an end is treated as a release": [
    "after the end every token is void, and a message returns ended",
    "a result in the batch of its run's end is dropped, and its item is deleted",
    "a turn's messages to ended and unknown runs are dropped",
  ],
  "every end is a completion": ["every ended run has its status, its time and its last entry"],
  "dropped items stay": [
    "dropped items are deleted, also when another worker holds them",
    "a dropped timer never fires",
  ],
  "messages of a turn get lost": [
    "parents and children that end in one batch all get their answers",
    "a child's answer reaches its parent in the commit that ends the child",
  ],
  "messages of a turn by id get lost": [
    "a turn's messages reach other runs in the same commit, by number, and its children by id",
  ],
  "children are not started": ["a child continues after its parent has ended, and its answer is dropped"],
  "a child whose id is taken is ignored": [
    "a child's id that belongs to another run puts `taken` into the parent's inbox",
    "of two children with one id in one commit the first is started",
  ],
  "a detached child is treated like any other": ["a detached child answers no command and outlives its parent"],
  "every child is detached": ["children start in their parent's commit, linked to it"],
  "a child is never leased to its starter": ["a child started with a claim is leased to the worker that started it"],
  "messages to a run that does not exist go to the newest one": ["a message to the number of a pruned run is dropped"],
  "an ended run is resumed by a message": [
    "a message in the batch of the run's end is counted as unread or returns ended, and is never stored",
    "a message returns the number of the run that received it",
  ],
  "unread messages are not counted": [
    "the end of a run deletes its items, timers and inbox and counts the unread messages",
  ],
  "finished items stay": ["finished items are deleted by the commit"],
  "the items of an ended run beyond the first thousand can be claimed": [
    "after the end of a run with more items than one transaction deletes, none can be claimed",
  ],
  "every start returns started": [
    "the same id twice in one batch starts once",
    "of 100 concurrent starts of one id one starts the run",
    "concurrent starts of one id on two connections start it once",
    "a start with a claim on an id that exists does not lease its turn",
  ],
  "a start of an existing run returns the input of the call": [
    "starting an id again returns exists with the first entry of the first start",
  ],
  "a run is never leased to its starter": [
    "a run started with a claim is leased to its starter, and no other worker can claim it",
  ],
  "an ended run's id can be started again": ["an ended run keeps its id"],
  "ids are compared as a lenient collation does": [
    "similar targets are different targets",
    "similar ids are different runs",
  ],
  "an unknown id has the newest run": ["an unknown id has no run"],
  "tags are lost": [
    "a started run is queued, holds its first entry, and its turn is due",
    "tags are matched as a whole, with any characters",
  ],
  "a target that accepts one message accepts two": [
    "a second message to a target that accepts one is a duplicate",
    "a target that accepts one message accepts no other after that one was read",
  ],
  "every target accepts only one message": ["a message to a target that accepts several is never a duplicate"],
  "two concurrent messages to a target that accepts one are both stored": [
    "of concurrent messages to a target that accepts one, one is stored",
  ],
  "a second message to a target that accepts one is refused only while the first is unread": [
    "of concurrent messages to a target that accepts one, one is stored",
  ],
  "a stopped run continues without a resume": [
    "a flow stopped at a node keeps its evidence, and its nodes can be claimed only after a resume",
    "messages to a run stopped as blocked are stored, and only a resume makes its turn due",
    "messages to a run stopped as determinism_violation are stored, and only a resume makes its turn due",
    "a result for a stopped run is kept until it is resumed",
    "a timer of a stopped run arrives but makes no turn due until it is resumed",
  ],
  "a stop returns committed without being written": ["a stop with a wrong token writes nothing"],
  "every resume returns committed": ["resume refuses a run that is not stopped"],
  "resume does nothing": [
    "resume refuses a run that is not stopped",
    "a flow whose node killed too many workers is blocked, and its other nodes wait until it is resumed",
  ],
  "evidence is lost": [
    "a run stopped as blocked keeps its evidence, and nothing of the turn is written",
    "a run stopped as determinism_violation keeps its evidence, and nothing of the turn is written",
  ],
  "an item that was deleted still has a token": ["the holder of an item can read whether it still holds it"],
  "deadlines are forgotten": [
    "a deadline fires once, counted from the start, and is deleted when the run ends",
    "a child's deadline is counted from the start of the child",
  ],
  "a pause returns committed without being written": [
    "a paused run keeps its messages, and its turn is due only after resume",
    "a due run is no longer due once it is paused",
  ],
  "a worker can pause a run that another worker holds": [
    "a run that pauses itself keeps the reason until it is resumed, and its holder keeps the turn",
    "a worker cannot pause a run that another worker holds, and can pause one that no worker holds",
  ],
  "a pause voids the token of the turn": [
    "a run that pauses itself keeps the reason until it is resumed, and its holder keeps the turn",
    "the holder of a paused run can commit, and releases the turn without making it due",
    "a run resumed while it is held continues with its holder, and is due when the holder returns the turn",
  ],
  "a paused turn that is returned is due": [
    "the holder of a paused run can commit, and releases the turn without making it due",
    "a paused run whose turn is returned or taken over stays paused",
  ],
  "a termination notifies no run": ["termination answers the parent and cancels live children, in the same write"],
  "a termination stores no reason": [
    "a terminated run has ended with an entry RunCancelled, and its holder's next commit is rejected",
  ],
  "every pause and termination returns committed": [
    "pause refuses a run that has ended, is stopped or does not exist",
    "terminate refuses a run that has ended or does not exist",
  ],
  "a commit of a paused run is rejected": [
    "the holder of a paused run can commit, and releases the turn without making it due",
  ],
  "a retry restores no items": [
    "a failed run that is retried is live again, continues its journal and has its items back",
    "a retried run gets a new deadline",
  ],
  "a retried run takes no slot of its queue": ["a retried run takes a slot of its queue, even when none is free"],
  "a retry does not check singleton keys": [
    "a retry is refused while another live run has its singleton key, and takes the key afterwards",
  ],
  "a retry does not check the children": ["a retry planned for another head or for an ended child writes nothing"],
  "the writes of a retry are applied in reverse": [
    "a parent that is retried after its child in one batch finds the child live",
  ],
  "a retried run forgets its dedup ids": [
    "a retried run keeps the dedup ids of its messages and its settled ports, except those that are reopened",
  ],
  "a migration keeps the version": [
    "a migrated run has the new version and a due turn, and its journal continues with RunMigrated",
    "a run that waits for room in its queue is migrated with its place, and starts with the new version",
    "the queued nodes of a migrated flow wait for the new version, and the leases of running ones are void",
  ],
  "a migration checks neither head nor chain": ["a run that has moved on, has ended or does not exist is not migrated"],
  "a migration leaves the turn to its holder": [
    "a migration revokes the turn: the holder's next commit is rejected, and the turn counts as returned",
  ],
  "a migrated run that is paused is resumed": [
    "a paused run stays paused when it is migrated; a run that was stopped is due, without its evidence",
  ],
  "a migration revokes the leases of tasks": [
    "a task keeps its lease when its run is migrated, and its result arrives",
  ],
  "a migration accepts every route": [
    "a flow whose node waits under a route that the new version does not have is not migrated",
  ],
  "a migration accepts no route": [
    "the queued nodes of a migrated flow wait for the new version, and the leases of running ones are void",
  ],
  "a turn may be claimed twice": [
    "a due turn is claimed by one worker only",
    "two connections that claim at the same time share the turns without overlap",
  ],
  "an item may be claimed twice": ["two connections that claim at the same time share the items without overlap"],
  "turns of unnamed definitions are claimed": ["only turns of the named definitions are claimed"],
  "items of unnamed tasks are claimed": ["only items of the named tasks are claimed"],
  "timers can be claimed": ["a timer cannot be claimed"],
  "priority does not count": [
    "priority counts within a queue and across queues, then age",
    "the item with the highest priority is claimed first, then the oldest",
    "the turn with the highest priority is claimed first, then the oldest",
    "priority counts across definitions",
  ],
  "a claim takes one more than it may": [
    "a claim takes at most as many turns as it brings tokens, and each has one of them",
  ],
  "readProgress hides the token": ["readProgress returns id, status, arrivals and token of every run that exists"],
  "a claimed turn has no inbox": ["messages that arrived while a lost turn was held are delivered to the next holder"],
  "items and timers are ready a millisecond early": [
    "a delayed item becomes ready at its time and not before",
    "a timer fires once, never early, and makes the turn due",
  ],
  "items and timers are ready a millisecond late": ["an item whose delay is over is ready at once"],
  "every item looks ready": ["readItems returns the state, the attempt and the failures of an item"],
  "an item is never leased by the write that inserts it": [
    "an item inserted with a claim is leased to its worker, and no worker can claim it",
  ],
  "an item is claimed with the data of entry 1": [
    "a scheduled item is claimed once, with the data of the entry that scheduled it",
  ],
  "an item ends but its result is lost": ["an item's result arrives in its run and makes the turn due"],
  "a returned item forgets its attempt": ["a returned item is claimed again with its attempt and failures"],
  "a returned item forgets its failures": ["a returned item is claimed again with its attempt and failures"],
  "a returned item is ready at once": ["an item returned with a delay is not ready before its time"],
  "a returned item stays in its queue": ["a node that moves into a queue waits for a slot of its key"],
  "fire-due ignores its limit": [
    "timers fire in the order they are due, and the next one is known",
    "a limit leaves the other due timers for the next call",
  ],
  "fire-due does not return the next time": ["an item returned with a delay is not ready before its time"],
  "a timer fires twice": ["a timer fires once when two connections poll at the same time"],
  "timers never fire": ["an item whose delay is over is ready at once"],
  "an entry forgets the execution that it ends": [
    "an entry keeps the execution that it ends: its number, worker, start and duration",
  ],
  "a node's entry forgets the execution that it ends": ["a node's entry keeps the execution that it ends"],
  "a result in the inbox forgets its execution": ["a result of another worker carries its execution through the inbox"],
  "every claim of an item is its first execution": [
    "every claim of an item is one execution more, whatever returned it",
    "an item that the write which inserts it leases has execution 1, and 2 after a takeover",
    "a failed attempt that is retried is recorded with its error",
  ],
  "a failed attempt is not recorded": [
    "a failed attempt that is retried is recorded with its error",
    "a step keeps the records of its last hundred failed attempts",
  ],
  "lost and returned work is not recorded": [
    "a lost turn is recorded with its worker, its start and the head of the journal",
    "an item that the write which inserts it leases has execution 1, and 2 after a takeover",
    "work that a worker returns is recorded as returned, not as lost",
  ],
  "returned work counts as lost": ["work that a worker returns is recorded as returned, not as lost"],
  "a lost turn does not say where the journal ended": [
    "a lost turn is recorded with its worker, its start and the head of the journal",
  ],
  "a failed attempt is recorded although its write was rejected": ["a rejected return records no attempt"],
  "a worker takes over its own work": ["a worker never takes over its own work"],
  "expired workers are never taken over": [
    "the turns and items of an expired worker are claimed by others, and its tokens are void",
    "a lease is taken over once when two connections reap at the same time",
    "a run that has ended is not taken over with its last holder",
    "timers fire and leases expire on time although the wall clock was set back",
  ],
  "a lease that expires now is still held": [
    "a lease that expires exactly now is lost, and one with a millisecond left is not",
  ],
  "a lease is lost a millisecond early": [
    "a lease that expires exactly now is lost, and one with a millisecond left is not",
  ],
  "renewing always succeeds": ["renewing returns false after the lease was taken over"],
  "renewing does not extend the lease": ["a renewed lease keeps everything its worker holds"],
  "a worker's profile and activity are not stored": [
    "a worker's profile and activity are returned as they were stored",
  ],
  "a heartbeat without an activity deletes the one before": [
    "a worker's profile and activity are returned as they were stored",
  ],
  "only workers that are alive are listed": [
    "a worker whose lease has expired is listed until another worker takes over",
  ],
  "readHeld returns nothing": ["readHeld returns what a worker claimed, until that ends or is returned"],
  "a released worker keeps its leases": ["a worker's lease is listed until it is released"],
  "a release counts as a takeover": ["a worker that releases returns its work at once, without a takeover"],
  "worker numbers are used again": ["worker numbers are never used again"],
  "a run is never blocked": [
    "after too many takeovers of an item without a commit its run is blocked with evidence",
    "after too many takeovers of its turn without a commit a run is blocked with evidence",
    "a node that too many workers lost blocks its flow, and the other nodes wait until it is resumed",
  ],
  "no work becomes a suspect": [
    "chunks alone do not clear a suspect",
    "suspect turns are claimed before other turns, in groups that shrink with each takeover",
    "suspect items are claimed before other items, in groups that shrink with each takeover",
    "suspects are spread over workers that claim at the same time",
  ],
  "a group of suspects is claimed together with other work": [
    "suspect turns are claimed before other turns, in groups that shrink with each takeover",
    "suspect items are claimed before other items, in groups that shrink with each takeover",
    "the highest level of suspects is claimed first, across names",
    "a run is blocked only after three takeovers alone",
  ],
  "a worker that holds an isolated suspect claims others": [
    "a worker that holds an isolated suspect claims no other one until it has committed",
    "a worker that holds an isolated item claims no other suspect",
  ],
  "a claim takes one item at most": ["the highest level of suspects is claimed first, across names"],
  "a run is blocked at the first takeover": [
    "a commit resets the number of takeovers",
    "a resume resets the number of takeovers",
  ],
  "the holder of a run is the wrong worker": [
    "the holders of a run and its items, and the time of its last commit, can be read",
  ],
  "the last commit of a run is its start": [
    "the holders of a run and its items, and the time of its last commit, can be read",
  ],
  "a new store has a history": ["a new store has no history"],
  "a queue has one slot too many": [
    "a refill leases the next items in the transaction that frees their slots",
    "a queue leases at most as many items at once as its concurrency, across workers",
    "a full queue does not hold back items without a queue",
    "a queue starts as many runs as it has slots, and a run that ends frees its slot",
  ],
  "limits per key are ignored": [
    "a suspect whose queue has no free slot does not block other suspects",
    "an item whose key has no free slot does not block others, and is claimed when the key has one",
    "a run whose key has no free slot does not block other runs, and starts when the key has one",
    "the end of a run frees the keys of its items",
    "new limits admit items that the old ones held back",
  ],
  "rates are ignored": [
    "a rate admits its limit in any window, and the store says when it admits more",
    "a rate per key holds back only its key, and admits more on time",
  ],
  "rates admit a millisecond late": [
    "a rate admits its limit in any window, and the store says when it admits more",
    "a rate per key holds back only its key, and admits more on time",
  ],
  "items forget their queue": [
    "a paused queue admits nothing until it is resumed",
    "queues are listed with their limits and their items",
  ],
  "a key that is freed stays taken": [
    "every write that removes an item frees its key",
    "an item whose key has no free slot does not block others, and is claimed when the key has one",
  ],
  "a queue cannot be paused": ["a paused queue admits nothing until it is resumed"],
  "changed limits are not stored": ["limits that an operator changed stay until other limits are declared"],
  "a deployment undoes what an operator changed": [
    "limits that an operator changed stay until other limits are declared",
  ],
  "a claim does not return when a rate admits more": [
    "a rate admits its limit in any window, and the store says when it admits more",
  ],
  "a claim does not return that work is held back": [
    "a queue leases at most as many items at once as its concurrency, across workers",
    "a queue starts as many runs as it has slots, and a run that ends frees its slot",
  ],
  "a refill claims from everywhere": [
    "a refill claims only from its queues",
    "a refill leaves the slot to suspects, and to items that the worker does not claim",
  ],
  "a refill goes before the writes that free its slots": [
    "a refill leases the next items in the transaction that frees their slots",
    "a refill claims only from its queues",
  ],
  "a refill forgets what it has leased": [
    "a refill leases the next items in the transaction that frees their slots",
    "a refill obeys rates, keys and pauses",
  ],
  "no items are leased ahead of slots": [
    "a worker with slots of a queue leases items ahead of them, and keeps the slots",
    "leased slots start with the functions of the worker, and grow with the room of the queue",
    "slots that a worker gives back are free, except for the items that it holds",
    "the slots of a worker that is taken over or shuts down are free",
    "a refill leaves only the queues to other claims where items of other tasks wait",
  ],
  "slots that a worker gives back stay leased": [
    "slots that a worker gives back are free, except for the items that it holds",
  ],
  "a worker uses one slot more than it has leased": [
    "a worker with slots of a queue leases items ahead of them, and keeps the slots",
    "leased slots start with the functions of the worker, and grow with the room of the queue",
  ],
  "a worker keeps slots of a queue that is closed to it": [
    "a queue that is paused, or has other limits, admits no items ahead of slots",
    "a worker leases no items ahead while items of other tasks wait in the queue",
    "a worker leases no items ahead while more slots of the queue are taken than it has",
  ],
  "a worker leases slots for all items that it holds": [
    "leased slots start with the functions of the worker, and grow with the room of the queue",
  ],
  "slots are leased to a worker that has none": [
    "a worker without a slot of a queue leases no item ahead",
    "the slots of a worker that is taken over or shuts down are free",
  ],
  "a claim of items takes no turns": [
    "a claim of a task takes the turn of its run if the run waits, under the same token",
    "a claim takes no turn that is held, due or stopped, or of another definition",
  ],
  "a claim of items takes the turns of all definitions": [
    "a claim takes no turn that is held, due or stopped, or of another definition",
  ],
  "a second pause of a queue replaces the time of the first": [
    "a queue shows when it was paused, and pausing it again changes nothing",
  ],
  "queues are counted as empty": ["queues are listed with their limits and their items"],
  "the backlog is counted without a limit": ["counts stop at the given limit and include the lowest priority"],
  "only the highest priority of the backlog is counted": [
    "counts stop at the given limit and include the lowest priority",
  ],
  "the backlog has no labels": ["the backlog is listed by what a worker needs to claim it"],
  "long names are truncated": ["a node with the longest possible route is listed and claimed"],
  "leased work is part of the backlog": [
    "leased, delayed and stopped work is not part of the backlog",
    "suspects and parked items are part of the backlog",
  ],
  "a delay is a millisecond short": [
    "a delayed run starts when its delay is over, and no message starts it earlier",
    "a debounced start replaces the input and the start time of a run that has not started",
  ],
  "runs forget their queue": [
    "children in a queue wait for a slot like other runs",
    "a queue starts as many runs as it has slots, and a run that ends frees its slot",
  ],
  "a queue starts all its runs": ["a queue starts as many runs as it has slots, and a run that ends frees its slot"],
  "a queue starts runs of every version": ["a run of a version that the worker lacks is not started and takes no slot"],
  "a singleton is started again": ["a singleton start returns the live run with its key, for every caller"],
  "a debounced start creates another run": [
    "a debounced start replaces the input and the start time of a run that has not started",
  ],
  "the first of several debounced starts counts": [
    "a debounced start replaces the input and the start time of a run that has not started",
  ],
  "the holder of a cancelled run does not learn that its code never ran": [
    "a run that is cancelled before it starts leaves its queue, and its holder learns that its code never ran",
  ],
  "a list is oldest first": ["runs are listed newest first"],
  "a list ignores before": ["paging stays stable while runs are added"],
  "a list ignores tags": ["tags are matched as a whole, with any characters"],
  "a list ignores definition": ["a list holds the runs of one definition, some statuses, one tag"],
  "a list ignores kind": ["a list holds the runs of one kind"],
  "a list ignores statuses": ["a list holds the runs of one definition, some statuses, one tag"],
  "a list ignores createdAfter": ["a list holds the runs that were created or ended in a period"],
  "a list ignores createdBefore": ["a list holds the runs that were created or ended in a period"],
  "a list ignores endedAfter": ["a list holds the runs that were created or ended in a period"],
  "a list ignores endedBefore": ["a list holds the runs that were created or ended in a period"],
  "a list ignores errorCode": ["a failed run has the code of its error, otherwise its name, until it is retried"],
  "a list ignores idContains": ["a list holds the runs whose id contains a text"],
  "a list ignores parent": ["a list holds the children of all generations of a run, and no others"],
  "a list ignores its limit": ["runs are listed newest first"],
  "counts of runs ignore the definition": [
    "runs are counted by status, of all definitions or of one, and counts stop at a bound",
  ],
  "counts of runs have no bound": [
    "runs are counted by status, of all definitions or of one, and counts stop at a bound",
  ],
  "the times of ended runs ignore definition": [
    "the times of ended runs are read newest first, by definition and status, without children",
  ],
  "the times of ended runs ignore status": [
    "the times of ended runs are read newest first, by definition and status, without children",
  ],
  "the times of ended runs ignore endedAfter": [
    "the times of ended runs are read newest first, by definition and status, without children",
  ],
  "the times of ended runs ignore limit": [
    "the times of ended runs are read newest first, by definition and status, without children",
  ],
  "the times of ended runs are oldest first": [
    "the times of ended runs are read newest first, by definition and status, without children",
  ],
  "tags match by their beginning": ["tags are matched as a whole, with any characters"],
  "a list needs one of several tags": ["a list holds the runs that have all of several tags"],
  "a journal is always read from its beginning": ["a journal is read from any entry, up to a limit"],
  "a journal is read without limit": ["a journal is read from any entry, up to a limit"],
  "the end of a run is read without its last entry": ["every ended run has its status, its time and its last entry"],
  "a live run is read with an entry as its end": [
    "the end of a live run has its row and no entry; that of an unknown run is undefined",
  ],
  "an inbox is always read from its beginning": ["messages are numbered from 1 in the order of their arrival"],
  "a connection does not notice commits of other connections": ["a connection notices that another one has written"],
  "info counts nothing": ["info counts runs by status and items by state"],
  "prune ignores the age of runs": [
    "prune deletes the runs that ended before the given time, and only those",
    "a family is pruned as a whole, once every run of it ended before the given time",
  ],
  "a dry run prunes": ["a dry run of prune counts the runs it would delete, in whole families, and deletes nothing"],
  "prune removes nothing": ["a pruned id is free again"],
  "prune ignores families": ["a live child keeps its parent and its siblings from being pruned"],
  "rekeying adds a message": ["rekeying changes no readable payload"],
  "a backup is empty": ["a backup opens as a store with the same runs, and they continue there"],
  "check counts beyond its total": ["a healthy store reports progress and no problem"],
  "check reports a problem that does not exist": ["concurrent starts of one id on two connections start it once"],
  "time is the wall clock": [
    "time never goes backwards when the wall clock is set back, and does not stand still",
    "a connection opened after the wall clock was set back continues from the stored time",
  ],
  "time stands still": ["time moves with the clock"],
  "a connection sees only the runs it started itself": ["a committed write is visible to a connection opened later"],
  "a journal is read backwards": ["a commit appends its entries densely and moves head and chain"],
  "runs expire at any age": [
    "the runs of a definition expire by status and age, with everything they have",
    "a run that ended exactly at the time does not expire, and one after `after` does",
  ],
  "runs of any status expire": [
    "the generations of a run expire together, by the status of the last one",
    "the runs of a definition expire by status and age, with everything they have",
  ],
  "a batch ignores where it starts": [
    "a run that ended exactly at the time does not expire, and one after `after` does",
  ],
  "runs expire without their family": [
    "a family expires as a whole, by the status of its root, after its last run has ended",
    "a run does not expire while a fork of it exists",
  ],
  "every connection counts the runs that another one deleted": [
    "several connections expire the same runs, and each run is deleted once",
  ],
  "start keys of live runs are deleted": ["start keys are deleted when their runs are gone, and others stay"],
  "a deleted run stays": ["one ended run is deleted with its family, and its id is free again"],
  "a run is deleted while it is needed": ["a run is not deleted while a run of its family lives, sends, or has a fork"],
  "a failed run has no error code": [
    "a failed run has the code of its error, otherwise its name, until it is retried",
    "a flow that fails has the code of its error",
  ],
  "how long a call took is forgotten when it took no time": [
    "an entry keeps the duration of its call, and entries without a call have none",
  ],
  "payloads are normalized": ["a payload of umlauts, composed and decomposed is returned byte for byte"],
  "payloads are stored as JSON, not as text": [
    "a payload of unusual spacing and key order is returned byte for byte",
    "a payload of a number beyond a double is returned byte for byte",
  ],
  "payloads are trimmed": ["a payload of trailing spaces is returned byte for byte"],
  "payloads end at NUL": ["a payload of control characters and NUL is returned byte for byte"],
  "payloads lose characters beyond the basic plane": [
    "a payload of emoji with joiners is returned byte for byte",
    "a payload of the noncharacters at the end of planes is returned byte for byte",
  ],
  "payloads lose line separators and byte order marks": [
    "a payload of line separators is returned byte for byte",
    "a payload of right to left and a byte order mark is returned byte for byte",
  ],
  "payloads end after 64 KB": [
    "a payload of a megabyte is returned byte for byte",
    "a backup has the texts that payloads share, and a rekey keeps them",
  ],
  "a text that comes twice is returned once": ["payloads of several sizes and runs share no text wrongly"],
  "long texts of a payload lose their order": [
    "payloads that repeat long texts are returned byte for byte, over every connection",
  ],
  "a deleted run takes the long texts of others with it": [
    "deleting a run takes no text from another run, and leaves none behind",
  ],
  "payloads are unescaped once too often": ["a payload of quotes and backslashes is returned byte for byte"],
  "an empty payload is null": [
    "a payload of an empty object is returned byte for byte",
    "a payload of nothing is returned byte for byte",
    "a payload of a quoted empty text is returned byte for byte",
  ],
  "the dedup ids of messages are ignored": [
    "a second message with the same dedup id is a duplicate, with any content",
    "the dedup id of a message is stored for a day",
  ],
  "the dedup id of a message is treated as a target": [
    "the dedup id of a message does not collide with the name of a target",
  ],
  "the refusal of a second settlement does not have the first one": [
    "the refusal of a second settlement has the first one, before and after it was read",
    "a promise that is settled when the fork is made accepts no other value",
  ],
  "the dedup ids of messages are never deleted": ["the dedup id of a message is stored for a day"],
  "messages that the code never took are not counted": [
    "the end of a run counts messages that the code never took as unread",
  ],
  "a run counts all its messages as read": ["a run's record counts its received and its read messages"],
  "a turn does not return the children that its messages reached": [
    "a turn returns the children that its messages by id have reached",
  ],
  "a run's start does not say that it accepts updates": [
    "a run that accepts updates may wait without an open command in its journal",
  ],
  "only the first execution of a step reserves": [
    "an execution that reserves again makes what the one before reserved a loss",
  ],
  "a reservation that does not fit is granted": [
    "a reservation that does not fit waits as an open promise until a raise",
  ],
  "the end of an execution is not settled": [
    "a reservation counts until the commit of its end, which spends what the answer cost",
  ],
  "a failed execution is spent": ["a failed execution loses its reservation, unless it is free"],
  "the end of any execution settles the reservation": [
    "the end of an earlier execution changes nothing once a later one has reserved",
  ],
  "the end of a run keeps its reservations": [
    "the end of a run makes its open reservations a loss, and its requests are gone",
  ],
  "children pay from no budget": ["a child pays from the budget of its parent: together they stay within it"],
  "the budget of a child is ignored": [
    "the budget of a child is a part of its parent's, and the rest returns with its end",
  ],
  "a raise adds nothing": ["a reservation that does not fit waits as an open promise until a raise"],
  "a decline is a raise by nothing": ["a declined request is refused once, and is no longer listed"],
  "an offer wakes a call again that was woken": [
    "calls that wait are woken oldest first when others leave room for them, each once",
  ],
  "a message does not say which calls were woken": [
    "the calls of a run that are woken together are one message, which names them",
  ],
  "an offer that wakes calls is the last one": ["offers wake all calls that fit, however many wait"],
  "an offer says that no call that was woken before still waits": ["offers wake all calls that fit, however many wait"],
  "an offer sees only the oldest requests": ["calls that do not fit hide no call that fits"],
  "a budget always asks": ["a budget that fails refuses what does not fit, and lists nothing"],
  "a reservation needs no token": ["a reservation needs the token of the turn"],
  "the item of a request is not released": [
    "an item whose reservation does not fit waits without a worker, and is ready after a raise",
  ],
  "promises are not listed": ["a promise is listed from the turn that opens it to the turn that closes it"],
  "promises stay listed when they are settled": [
    "a promise is listed from the turn that opens it to the turn that closes it",
  ],
  "promises stay listed when their run ends": ["a run that ends, fails or is terminated has no open promises"],
  "the promises of a rejected turn are listed": ["a turn that is not committed opens and closes no promise"],
  "a retried run has no open promises": ["a retried run has the open promises of its plan"],
  "the name of a promise is ignored by lists": [
    "open promises are listed by name and by definition, page by page, by run",
  ],
  "the definition of a run is ignored by lists of promises": [
    "open promises are listed by name and by definition, page by page, by run",
  ],
  "a list of promises has only its first page": [
    "open promises are listed by name and by definition, page by page, by run",
  ],
  "settlements of a turn get lost": [
    "a turn settles a promise of another run, and gets the answer in its own inbox",
    "a settlement that another run refuses is answered with the reason, and writes nothing there",
    "a run that ends with a settlement delivers it, and has no answer",
  ],
  "a settlement does not check the definition of the other run": [
    "a settlement that another run refuses is answered with the reason, and writes nothing there",
  ],
  "a retry sends no settlement": ["a retry sends a settlement again"],
  "the memos of a turn get lost": [
    "the memos of a turn are committed with it, and read by their keys, in the order of the keys",
    "the memo of some keys, or all of it, can be cleared",
  ],
  "the memos of a rejected turn are written": ["a turn that is not committed remembers nothing"],
  "the memo of a task gets lost": [
    "the memo of a task is committed with its end, once, under the entry that scheduled it",
  ],
  "the memo of a node gets lost": ["the memo of a flow's node is committed with its entry"],
  "the memo answers in another order": [
    "the memos of a turn are committed with it, and read by their keys, in the order of the keys",
  ],
  "a divergence is known": ["two values of a key are a divergence, and the same value twice is none"],
  "a damaged memo is known": ["a value that does not match its key is damaged, and never known"],
  "a list of the memo has only its first page": ["the memo is listed page by page, with all rows of a key"],
  "a list of the memos of one run has those of others": ["the memos of one run are listed alone"],
  "clearing the memo clears nothing": ["the memo of some keys, or all of it, can be cleared"],
  "a deleted run stays in the store": ["the memo of a run that is deleted is deleted with it"],
  "chunks are not stored": ["chunks get dense offsets from 1 per stream, in the order they were emitted"],
  "chunks of a commit are written in reverse": ["a stream is read after an offset, up to a limit"],
  "a chunk is written again after a replay": ["a chunk of the code that is stored is not written again"],
  "a chunk does not keep its step": ["a chunk keeps the step and the execution that emitted it"],
  "a reset is written to one stream only": [
    "a repeated execution resets every stream that has chunks of its step, and no other",
  ],
  "resets go before all chunks of their commit": ["a commit with chunks of two executions has the reset between them"],
  "a node resets only its own chunks": [
    "a new attempt of a node resets what its earlier attempts called, and not what it called itself",
  ],
  "a node resets the chunks of its present attempt": [
    "a new attempt of a node resets what its earlier attempts called, and not what it called itself",
  ],
  "an operation's chunks are counted as the code's": [
    "a store counts the chunks that the code emitted, without those of operations",
  ],
  "all streams of a run are one": ["chunks get dense offsets from 1 per stream, in the order they were emitted"],
  "a stream is always read from its beginning": ["a stream is read after an offset, up to a limit"],
  "a stream is read without limit": ["a stream is read after an offset, up to a limit"],
  "chunks are trimmed": ["a chunk is returned byte for byte"],
  "chunks outlive their pruned run": ["streams outlive the end of their run and are deleted when it is pruned"],
  "the token of a schedule is not checked": [
    "of two writes with the token of the same read, the first one writes and the second one is refused",
    "a schedule that exists is not created again",
    "a removed schedule and its token are deleted, also when a schedule of its name is created again",
  ],
  "a rejected write of a schedule returns committed": [
    "of two writes with the token of the same read, the first one writes and the second one is refused",
    "a time that two connections fire at once is fired once",
  ],
  "the runs of a schedule are started apart from its row": [
    "of two writes with the token of the same read, the first one writes and the second one is refused",
    "a firing starts its runs in the write of the row, and skips an id that is taken",
    "a time that two connections fire at once is fired once",
  ],
  "a firing starts nothing": ["a firing starts its runs in the write of the row, and skips an id that is taken"],
  "a firing does not cancel the run before it": ["a firing can cancel the run before it, if that is still live"],
  "a schedule loses its input": ["a schedule is read as it was written"],
  "a removed schedule stays": [
    "a removed schedule and its token are deleted, also when a schedule of its name is created again",
  ],
  "schedules are due for every definition": [
    "dueSchedules returns the due schedules of the named definitions, and the next time",
  ],
  "a schedule is due before its time": [
    "dueSchedules returns the due schedules of the named definitions, and the next time",
  ],
  "a paused schedule is due": ["a schedule that is paused or has no next time is not due"],
  "a queued time is due at once": [
    "a schedule that is paused or has no next time is not due",
    "a schedule with a queued time is due once its last run has ended or is deleted",
  ],
  "a queued time is never due": ["a schedule with a queued time is due once its last run has ended or is deleted"],
  "schedules are listed backwards": ["schedules are listed by name, page by page"],
  "no message ever makes a run expected": [
    "a message before the start creates an expected run: a row without a journal that is not due",
    "a target that accepts one message accepts only one, also before the start",
    "no message is lost when a start and messages race for one id",
    "a child accepts messages before it is started",
  ],
  "every message makes a run expected": [
    "a message without beforeStart is refused when there is no run, and nothing is written",
  ],
  "an expected run looks like a started one": [
    "a message before the start creates an expected run: a row without a journal that is not due",
  ],
  "a start ignores the expected run": ["a run expected with one definition cannot be started with another"],
  "a start loses its messages": ["a start turns an expected run into a run that has its messages in order"],
  "the definition of a message is ignored": ["a message to a run of another definition is refused"],
  "an expected run cannot be cancelled": ["a cancelled expected run is deleted, and its id is free"],
  "an expected run is pruned at once": ["an expected run that is never started is pruned when it is old enough"],
  "an expected run is never pruned": ["an expected run that is never started is pruned when it is old enough"],
  "a start returns an expected run without its messages": [
    "a start turns an expected run into a run that has its messages in order",
  ],
  "a start deletes earlier messages": [
    "a start turns an expected run into a run that has its messages in order",
    "an expected run that is started without a claim is due, with its messages",
  ],
  "user SQL runs twice": ["user SQL and its entry are committed together"],
  "user SQL is committed although the fence does not hold": [
    "user SQL is rolled back when the fence of its commit does not hold",
  ],
  "user SQL is committed although its function threw": [
    "user SQL whose function throws is rolled back, and the outcome holds the error",
  ],
  "user SQL that its run no longer needs is committed": ["user SQL is rolled back when its run no longer needs it"],
  "a next generation keeps the version of the one before": [
    "a run that continues as new keeps its id and gets a new number and a new journal",
  ],
  "a next generation with a claim is not leased": [
    "the next generation is due at once, or leased to its starter with a claim",
  ],
  "carried messages are lost": [
    "messages move to the next generation in order: carried ones first, then unread ones",
    "dedup ids and settled promises move to the next generation",
  ],
  "the next generation is not returned": ["a message or a start by id finds the newest generation"],
  "a start by id is compared with the newest generation": ["a message or a start by id finds the newest generation"],
  "dedup ids do not move to the next generation": ["dedup ids and settled promises move to the next generation"],
  "unread messages stay with the generation that ends": [
    "messages move to the next generation in order: carried ones first, then unread ones",
  ],
  "answers to old commands reach the next generation": [
    "an answer to a command of the old generation does not reach the next",
  ],
  "a next generation has no parent": [
    "a next generation answers the parent of the first one, and receives its parent's messages",
  ],
  "a generation is pruned when it has ended": ["generations are pruned together, when the last has ended"],
  "turns of all versions are claimed": ["only turns of the wanted versions are claimed, also when others are due"],
  "runs are counted without their version": ["live and due runs are counted by version, ended ones are not"],
  "a next generation is not paused": ["a pause before a run continues as new applies to the next generation"],
  "outgoing messages are not stored": [
    "an outgoing message is claimed with everything that its delivery needs",
    "a store counts its outgoing messages, the failed ones, and the age of the oldest",
  ],
  "a message is next when the one before it is claimed": [
    "the outgoing messages of a run are claimed one after the other, across destinations",
    "an outgoing message is delivered or returned only by its token, and only once",
  ],
  "a claim of messages takes one run at a time": ["outgoing messages of different runs do not wait for each other"],
  "a claim of messages ignores the destination": ["only messages to the named destinations are claimed"],
  "an outgoing message has no payload": [
    "outgoing messages outlive the end of their run and keep it from being pruned",
  ],
  "the attempts of a message are forgotten": [
    "a returned message is claimed again when it is due, with its attempts, before the later ones of its run",
  ],
  "a delivery never returns `more`": [
    "the outgoing messages of a run are claimed one after the other, across destinations",
  ],
  "a rejected delivery returns committed": [
    "an outgoing message is delivered or returned only by its token, and only once",
  ],
  "a message that failed is due at once": [
    "a returned message is claimed again when it is due, with its attempts, before the later ones of its run",
  ],
  "a returned message stays leased": [
    "a returned message is claimed again when it is due, with its attempts, before the later ones of its run",
  ],
  "prune deletes runs with outgoing messages": [
    "outgoing messages outlive the end of their run and keep it from being pruned",
  ],
  "a message that was taken over counts no attempt": [
    "the message of a dead worker is claimed by another one, after a longer delay with every death",
  ],
  "a released worker keeps its messages": ["a worker that releases returns its messages at once"],
  "info does not count the outbox": [
    "a store counts its outgoing messages, the failed ones, and the age of the oldest",
  ],
  "checkpoints are not stored": [
    "a checkpoint is committed with its step, and read back as it was written",
    "checkpoints outlive the end of their run and are deleted when it is pruned",
  ],
  "labels are not stored": ["a checkpoint is committed with its step, and read back as it was written"],
  "every checkpoint has a state": ["a checkpoint is committed with its step, and read back as it was written"],
  "a repeated checkpoint is a conflict": [
    "a step that is committed again with the same key is already committed, for every caller",
    "of 100 concurrent commits of one checkpoint one succeeds, and 99 are already committed",
  ],
  "another state is treated as the same checkpoint": [
    "another state for a committed step from the holder is a conflict: the first checkpoint is kept, and the run stops with evidence",
    "a checkpoint key is unique in the whole store",
  ],
  "every worker that commits a checkpoint counts as the holder": [
    "another state for a committed step from a worker that lost the turn is lease_lost and changes nothing",
    "a rejected commit leaves no checkpoint",
  ],
  "keys are unique per run only": ["a checkpoint key is unique in the whole store"],
  "checkpoints are read without limit": ["a checkpoint is committed with its step, and read back as it was written"],
  "the newest checkpoint is returned instead of the newest whole one": [
    "a checkpoint is committed with its step, and read back as it was written",
  ],
  "checkpoints outlive their pruned run": [
    "checkpoints outlive the end of their run and are deleted when it is pruned",
  ],
  "a fork has only its first entry": ["a fork has two entries, its checkpoint and a due turn in one commit"],
  "a fork loses its label": ["a fork has two entries, its checkpoint and a due turn in one commit"],
  "a fork ignores the key of its checkpoint": [
    "a fork of a checkpoint that does not exist or has another key is refused",
  ],
  "a fork at an entry ignores its mark": ["a fork at an entry that does not exist or has another mark is refused"],
  "a fork at an entry has another head": [
    "a fork at an entry has its first entry and a due turn, and keeps its origin",
  ],
  "a fork replaces the run that has its id": [
    "a fork with an id that is taken returns the existing run and changes nothing",
  ],
  "a run is pruned though a fork of it stays": ["a run is not pruned while a fork of it exists"],
  "settled promises of a fork accept a second value": [
    "a promise that is settled when the fork is made accepts no other value",
  ],
  "a flow's fork forgets its counters": [
    "a flow's fork has the copied entries, counters and arrivals, and its ready nodes are queued",
  ],
  "a flow's fork queues no node": [
    "a flow's fork has the copied entries, counters and arrivals, and its ready nodes are queued",
  ],
  "steps are read by the seq of their entries": ["the entries of steps are read between two steps, up to a limit"],
  "the oldest checkpoint with a label is found": ["the newest checkpoint with a label is found, up to a step"],
  "a label is searched in all steps": ["the newest checkpoint with a label is found, up to a step"],
  "the token of a node is not checked": [
    "a repeated completion, or one with an old token, is stale and writes nothing",
    "a node whose worker died is queued again, and a completion by the dead worker is stale",
  ],
  "a stale completion returns committed": [
    "a completion under a returned turn is stale",
    "a completion for a run that has ended or does not exist is stale",
    "a flow ends once: the first output is kept, the second completion is stale, and the queue is empty",
  ],
  "arrivals get lost": [
    "a node is queued by the completion that brings its last arrival, in any order",
    "when several connections bring a node's arrivals at the same time, one of them queues it",
  ],
  "a node is queued only by an arrival that comes alone": [
    "arrivals with different edges, indexes and targets are all counted",
  ],
  "a repeated arrival counts again": [
    "a second arrival with the same target, edge and index is stored once and counted once",
  ],
  "edges are not distinguished": [
    "the last of a node's arrivals in one batch queues the node once",
    "arrivals with different edges, indexes and targets are all counted",
  ],
  "an arrival too many is ignored": [
    "a third arrival at a node that requires two blocks the run with evidence and does not change the counters",
    "an arrival at a barrier before its spread blocks the run",
  ],
  "`required` is not compared": [
    "another `required` than the first blocks the run with evidence, and nothing else is written",
  ],
  "a completion that breaks readiness returns stale": [
    "a third arrival at a node that requires two blocks the run with evidence and does not change the counters",
    "a second spread of the same items blocks the run",
  ],
  "a completion returns the wrong seq": [
    "completions of one run in one batch get dense entries in the order of the writes, and one chain",
  ],
  "inputs are read in the order of their writes": [
    "a node's inputs are read in one query, by target, edge and index, with the entries that hold them",
  ],
  "inputs are read in the text order of their index": [
    "items that end in reverse are read in the numeric order of their index",
  ],
  "a spread queues everything at once": [
    "a spread queues at most as many items at once as its window, and one more for each that ends",
  ],
  "a spread of no items queues nothing": ["a spread of no items queues its barrier in the same commit"],
  "an item that ends queues no other": [
    "items that end in one batch queue as many others, each once",
    "a paused flow counts the arrivals of its spread, and its items wait",
  ],
  "the items of a portion have no keys": [
    "each portion of a spread is queued with its keys, until all items are queued",
  ],
  "all items of a portion have the same key": [
    "items that wait for their key keep no other key of their spread waiting",
  ],
  "a portion queues nothing": [
    "a portion is queued once: its repetition and one of a lost lease are stale",
    "a portion of a paused flow waits until the flow is resumed",
  ],
  "nodes are never leased by the write that queues them": [
    "items and barriers with a claim are leased by the commit that queues them",
  ],
  "a flow is always running": [
    "a completion releases a flow's turn: the flow is running with nodes in the queue, and waiting without",
  ],
  "a completion never returns `more`": [
    "a message that arrives while a flow's turn is held makes it due again, and sets `more`",
    "a node's child whose id is taken puts `taken` into the flow's inbox",
  ],
  "nodes are returned as tasks": ["a node is claimed by its route, with the seq of its entry"],
  "nodes ignore their queue": ["nodes and tasks of one queue share its slots, and a completion frees the key"],
  "a paused flow continues": [
    "nodes that become ready while a flow is paused are stopped until it is resumed, and none is leased",
    "a paused flow counts the arrivals of its spread, and its items wait",
  ],
  "due nodes are not counted": ["ready nodes are counted by flow, version and queue"],
  "a flow never ends": [
    "a flow ends once: the first output is kept, the second completion is stale, and the queue is empty",
    "a flow that ends while a worker holds its turn voids the token of the turn",
    "after the end of a flow with more nodes than one transaction deletes, none can be claimed or completed",
  ],
  "messages of a completion get lost": ["a flow that ends answers its parent and cancels its live children"],
  "live children of a flow are not cancelled at its end": [
    "a flow that ends answers its parent and cancels its live children",
  ],
  "children of nodes are not started": ["a node's child whose id is taken puts `taken` into the flow's inbox"],
  "a retry forgets the nodes": [
    "a failed flow that is retried has the planned nodes ready again and its counters unchanged",
  ],
  "arrivals and counters outlive their pruned run": [
    "the arrivals and counters of a flow are deleted when its run is pruned, and those of other runs stay",
  ],
  "the holder of a turn is forgotten": [
    "the work of a run lists its turn, its holder and its items, leased ones first",
  ],
  "takeovers are not reported": ["the work of a run says that a worker lost its turn, and how often"],
  "every open item is ready": ["the work of a run lists timers, and starts that have not begun"],
  "children are not listed": ["the work of a run lists its live children; ended ones only count"],
  "undelivered messages are not listed": ["the work of a run lists undelivered messages, in order"],
  "waiting nodes are not listed": ["the work of a flow's run lists the nodes that wait, and what arrived"],
  "the holders of slots are not listed": ["the use of a queue names who holds its slots, as a whole and for a key"],
  "a rate always admits more": ["the use of a queue says when its rate opens, also after the rate was lowered"],
  "a turn adds no runtime": [
    "a turn adds the runtime that it names once, after those the row has",
    "a run keeps the first 16 runtimes",
  ],
  "a node of a flow adds no runtime": ["the turn and the nodes of a flow add the runtimes they name once each"],
  "the runtimes of a run have no limit": ["a run keeps the first 16 runtimes"],
  "a runtime is added again by every commit": [
    "a turn adds the runtime that it names once, after those the row has",
    "the turn and the nodes of a flow add the runtimes they name once each",
  ],
  "a run that continues as new is not noted": ["a federated store notes every end of a run, in the order of the ends"],
  "noted runs come in the order of their numbers": [
    "a federated store notes every end of a run, in the order of the ends",
  ],
  "every store is federated": ["a store that is not federated notes nothing"],
  "a run is noted once": ["a run that is retried is noted by its next end, and not before"],
  "the log is read backwards": ["records are numbered from 1 in the order in which they are appended"],
  "the expected size of the log is not checked": [
    "nothing is appended to a log that has more or fewer records than expected",
  ],
  "the notes of sequenced runs are not checked": [
    "nothing is appended for an end that is not noted, or that the run has left behind",
  ],
  "a sequencer appends whatever others appended": ["of several sequencers one appends each record"],
  "no run is pinned": ["a run is kept while its end is noted or it is pinned, with its family"],
  "a release takes notes away": ["a release leaves a noted run noted"],
  "a pinned run cannot be forgotten": [
    "a family is forgotten whatever keeps its records, and its records stay in the log",
  ],
  "no run is adopted": [
    "a sweep adopts the runs that ended before the store was federated",
    "what ends while federation is switched off is found when it is on again",
  ],
  "every sweep says that it noted all runs": ["several sweeps at the same time note each run once"],
  "federation cannot be switched off": ["a store that is not federated any more keeps no run for the log"],
  "a process never learns that its store is federated": [
    "a process notes ends from the heartbeat on that follows the switch of another",
  ],
  "runs by number come in another order": ["runs are read by number, in the order of the numbers"],
  "every webhook gets the events of all definitions": [
    "the end of a run is an event for every webhook that wants it, in the same commit",
  ],
  "a terminated run is no event": ["the end of a run is an event for every webhook that wants it, in the same commit"],
  "an event does not say what happened when": ["an event is claimed with what its delivery needs, and once"],
  "an open promise is no event": ["an open promise is an event with its entry"],
  "two stops at the same entry are one event": ["a stop is an event, also a second one at the same entry"],
  "a run that the store blocks is no event": ["a run that the store blocks after too many takeovers is an event"],
  "a process never stops writing events": [
    "a rejected commit writes no event, and neither does a store without webhooks",
  ],
  "a delivered event makes the next message of its run due": [
    "events and the messages of their run do not wait for each other",
  ],
  "a claim has no limit per destination": ["a claim takes as many messages of a destination as it asks for"],
  "prune deletes runs with events": ["an undelivered event keeps its run for three days, and is deleted with it"],
  "a delivered event stays": ["a delivered event keeps nothing"],
};
