// Who catches whom: for every mutant the cases that must notice it. Every case stands here at least once, so each of them
// has been seen to fail; a case that is added needs a mutant it catches.
//
// Not simply all cases on all mutants: that takes minutes, and a mutant that breaks everything would vouch for every case.

export const CAUGHT_BY: Readonly<Record<string, readonly string[]>> = {
  "the token of a turn is not checked": [
    "a commit with a wrong token writes nothing anywhere",
    "a void commit shows nothing",
    "a void commit sends nothing",
    "the token of one run is void for another",
    "in a batch with void writes the others are unaffected",
  ],
  "the token of an item is not checked": ["an item ends once: its token is void afterwards, and so is any other"],
  "finished items do not fence the commit": [
    "one stale finished item voids the whole commit, the other finished items included",
    "an item that another worker took over voids the commit of the one who lost it",
  ],
  "the head of a commit is not checked": ["a wrong head under the right token answers conflict and writes nothing"],
  "the chain of a commit is not checked": [
    "a commit after another chain than the run's answers conflict and writes nothing",
  ],
  "a repeated commit is not recognised": [
    "a repeated commit answers already_committed and writes nothing twice",
    "a repeated commit is recognised after the run has gone on",
  ],
  "every commit is answered committed": [
    "a token that was given back is void",
    "after a void commit the run goes on as if nothing had been asked",
  ],
  "a void write takes the rest of its batch along": [
    "results of one run in one batch all arrive, the void ones excepted",
  ],
  "the writes of a batch are applied in reverse": ["the writes of a batch are applied in order"],
  "a batch has an answer too many": ["an empty batch answers an empty list"],
  "a commit under an expired lease is void": ["an expired lease still commits while nobody has taken over"],
  "a turn is answered committed without being written": ["the token of one run is void for another"],
  "a release forgets what arrived since the last read (lost wake-up)": [
    "a message that arrives while the turn is held leaves the turn due",
    "a message that arrives while the turn is held, before a commit that holds on leaves the turn due",
    "a message that arrives just before the releasing commit is sent leaves the turn due",
    "a timer that falls due while the turn is held arrives and leaves the turn due",
  ],
  "a turn is due only before its first message (lost wake-up)": [
    "a message that arrives in the batch of the releasing commit, before it leaves the turn due",
    "a message that arrives in the batch of the releasing commit, after it leaves the turn due",
    "a message that arrives while the releasing commit is in flight leaves the turn due",
    "a message that arrives after the turn was given back leaves the turn due",
  ],
  "more is never true": ["of two children with one id in one commit the first is started"],
  "more is always true": ["more is true exactly when something arrived beyond what was read"],
  "nothing is ever read": ["a turn is claimed with its unread messages, and reading removes them"],
  "a turn is never given back": [
    "a commit without entries moves nothing but the turn",
    "a turn that is held is claimed by nobody, and one that has read everything is not due",
    "a claimed run says how far it has got",
  ],
  "a turn is always given back": ["a dropped timer never fires"],
  "an end is taken for a release": [
    "after an end every fence is void and messages answer ended",
    "a result that comes with its run's end is dropped, and its item is gone",
    "a turn's messages to ended and unknown runs are dropped without harm",
  ],
  "every end is a completion": ["every end has its status, its moment and its last entry"],
  "dropped items stay": ["dropped items are gone, whoever holds them", "a dropped timer never fires"],
  "messages of a turn get lost": [
    "parents and children that end in one batch are all answered",
    "a child's answer reaches its parent in the commit that ends the child",
  ],
  "messages of a turn by id get lost": [
    "a turn's messages reach other runs in the same commit, by number, and its children by id",
  ],
  "children are not started": ["a child goes on when its parent has ended, and its answer is dropped"],
  "a child whose id is taken is passed over in silence": [
    "a child's id that belongs to another run puts `taken` into the parent's inbox",
    "of two children with one id in one commit the first is started",
  ],
  "a detached child is like any other": ["a detached child answers no command and outlives its parent"],
  "every child is detached": ["children start in their parent's commit, linked to it"],
  "a child is never its starter's": ["a child started with a claim is its starter's"],
  "messages to a run that is gone go to the newest one": ["a message to the number of a pruned run reaches nobody"],
  "an ended run is resumed by a message": [
    "a message sent in the batch of the run's end is counted or answered ended, never kept",
    "a message answers whom it reached",
  ],
  "unread messages are not counted": [
    "an end takes the items, timers and inbox of its run along and counts the unread",
  ],
  "finished items stay": ["finished items go with the commit"],
  "the items of an ended run beyond the first thousand can be claimed": [
    "an end with more items than one transaction should delete leaves none that can be claimed",
  ],
  "every start is answered started": [
    "the same id twice in one batch starts once",
    "of a hundred concurrent starts of one id one starts the run",
    "concurrent starts of one id on two connections start it once",
    "a claim on an id that exists gives nobody its turn",
  ],
  "a start that exists answers with what was asked": [
    "starting an id again answers exists with the first entry of the first start",
  ],
  "a run is never its starter's": ["a run started with a claim is its starter's and can be claimed by nobody else"],
  "an ended run's id can be started again": ["an ended run keeps its id"],
  "ids are compared as a lenient collation does": [
    "targets that look alike are different targets",
    "ids that look alike are different runs",
  ],
  "an unknown id has the newest run": ["an unknown id has no run"],
  "tags are lost": [
    "a started run is queued, holds its first entry, and its turn is due",
    "tags are matched whole, whatever characters they hold",
  ],
  "messages that may come once may come twice": [
    "a second message to a target that takes one is a duplicate",
    "a message that was the only one allowed stays so after it was read",
  ],
  "every message may come once only": ["a message that need not be the only one never is a duplicate"],
  "of two concurrent messages that may come once both are kept": [
    "of concurrent messages to a target that takes one, one is kept",
  ],
  "a message that may come once is refused only while the first is unread": [
    "of concurrent messages to a target that takes one, one is kept",
  ],
  "a stopped run goes on by itself": [
    "a flow stopped at a node keeps its evidence and hands out no node until it is resumed, and then all of them",
    "messages to a run stopped as blocked are kept, and only resume makes its turn due",
    "messages to a run stopped as determinism_violation are kept, and only resume makes its turn due",
    "a result for a stopped run is kept until it is resumed",
    "a timer of a stopped run arrives but makes no turn due until it is resumed",
  ],
  "a stop is answered but not written": ["a stop with a wrong token writes nothing"],
  "every resume is answered committed": ["resume refuses a run that is not stopped"],
  "resume does nothing": [
    "resume refuses a run that is not stopped",
    "a flow whose node killed too many workers is blocked, and its other nodes wait until it is resumed",
  ],
  "evidence is lost": [
    "a run stopped as blocked keeps its evidence and nothing else of the turn",
    "a run stopped as determinism_violation keeps its evidence and nothing else of the turn",
  ],
  "an item that is gone still looks held": ["who holds an item can see whether it still is theirs"],
  "deadlines are forgotten": [
    "a deadline comes due once, counted from the start, and goes with the run's end",
    "a child's deadline is counted from its own start",
  ],
  "a pause is answered but not written": [
    "a paused run keeps its messages, and its turn is due only after resume",
    "a run that is due is not due any more when it is paused",
  ],
  "whoever pauses a run by itself may, also when another holds it": [
    "a run that its holder pauses keeps the reason until it is resumed, and its holder its turn",
    "nobody pauses by itself a run that another holds; one that nobody holds can be",
  ],
  "a pause takes the turn away from its holder": [
    "a run that its holder pauses keeps the reason until it is resumed, and its holder its turn",
    "the holder of a paused run can still commit, and gives the turn back without making it due",
    "a run resumed while it is held goes on with its holder, and is due when that one gives it back",
  ],
  "a turn that comes back paused is due": [
    "the holder of a paused run can still commit, and gives the turn back without making it due",
    "a paused turn that is given back, or taken over, stays paused",
  ],
  "a termination tells nobody": ["termination answers the parent and asks live children to stop, in the same write"],
  "a termination keeps its reasons to itself": [
    "a terminated run has ended, its last entry says so, and its holder's next commit is void",
  ],
  "every control is answered committed": [
    "pause refuses a run that has ended or is stopped, and one that is not there",
    "terminate refuses a run that has ended, and one that is not there",
  ],
  "a commit of a paused run is void": [
    "the holder of a paused run can still commit, and gives the turn back without making it due",
  ],
  "a retry brings nothing back": [
    "a failed run that is retried is live again, with its journal continued and its items back",
    "a retried run gets its deadline anew",
  ],
  "a retried run has no place in its queue": [
    "a retried run has its place in its queue again, whether there is room or not",
  ],
  "a retry does not look at singleton keys": [
    "a retry is refused while another live run has the singleton key, and takes it back afterwards",
  ],
  "a retry does not look at the children": [
    "a retry planned for another head, or for a child that has ended, writes nothing",
  ],
  "the writes of a retry are applied in reverse": [
    "a parent that is retried after its child, in one batch, finds it live",
  ],
  "a retried run forgets who spoke to it": [
    "a retried run knows the ids of its messages and the ports that have their value, but for the one that is open again",
  ],
  "a turn may be claimed twice": [
    "a due turn goes to one worker only",
    "two connections that claim at the same time share the turns without overlap",
  ],
  "an item may be claimed twice": ["two connections that claim at the same time share the items without overlap"],
  "turns of unnamed definitions are claimed": ["only turns of the named definitions are claimed"],
  "items of unnamed tasks are claimed": ["only items of the named tasks are claimed"],
  "timers are tasks": ["a timer is claimed by nobody"],
  "urgency does not count": [
    "urgency counts within a queue and across queues, then age",
    "the most urgent item is claimed first, among equals the oldest",
    "the most urgent turn is claimed first, among equals the oldest",
    "urgency counts across definitions",
  ],
  "a claim takes one more than it may": [
    "a claim takes at most as many turns as it brings tokens, and each has one of them",
  ],
  "a pulse hides the token": ["a pulse tells status, arrivals and token of every run that exists"],
  "a claimed turn comes without its inbox": [
    "messages that came while a lost turn was held are there for the next holder",
  ],
  "items and timers are ready a millisecond early": [
    "a delayed item becomes ready at its time and not before",
    "a timer fires once, never early, and makes the turn due",
  ],
  "items and timers are ready a millisecond late": ["an item whose time has already come is ready at once"],
  "every item looks ready": ["how an item stands can be seen: delayed, ready or leased, its attempt and failures"],
  "an item is never its maker's": ["a pre-claimed item is its maker's and can be claimed by nobody"],
  "an item is claimed with the data of entry 1": [
    "a scheduled item is claimed once, with the data of the entry that scheduled it",
  ],
  "an item is answered ended but its result is lost": ["an item's result arrives in its run and makes the turn due"],
  "an item given back forgets its attempt": ["an item given back is claimed again with its attempt and failures"],
  "an item given back forgets its failures": ["an item given back is claimed again with its attempt and failures"],
  "an item given back is ready at once": ["an item given back for later is not ready before its time"],
  "fire-due knows no limit": [
    "timers fire in the order they are due, and the next one is known",
    "a limit leaves the rest of what is due for the next call",
  ],
  "fire-due does not know what is next": ["an item given back for later is not ready before its time"],
  "a timer fires twice": ["a timer fires once when two connections look at the same time"],
  "timers never fire": ["an item whose time has already come is ready at once"],
  "a worker takes over from itself": ["a worker never takes over from itself"],
  "nobody takes over": [
    "a reaped worker's turns and items go to others and its tokens are void",
    "a lease is taken over once when two connections reap at the same time",
    "an ended run is nobody's when its last holder is reaped",
    "timers and leases run out on time although the wall clock was set back",
  ],
  "a lease that expires now is still held": [
    "a lease that expires exactly now is lost, one that has a millisecond left is not",
  ],
  "a lease is lost a millisecond early": [
    "a lease that expires exactly now is lost, one that has a millisecond left is not",
  ],
  "renewing always succeeds": ["renewing answers false after the lease was taken over"],
  "renewing does not lengthen the lease": ["a renewed lease keeps everything its worker holds"],
  "nothing a worker says about itself is kept": [
    "what a worker says about itself and its work is given back as it was said",
  ],
  "a heartbeat without news forgets what was said before": [
    "what a worker says about itself and its work is given back as it was said",
  ],
  "only workers that are alive are listed": ["a worker whose lease has run out is listed until somebody takes over"],
  "what a worker holds is never listed": [
    "what the store says a worker holds is what it was given, until that ends or goes back",
  ],
  "a released worker keeps what it holds": ["a worker's lease is listed until it is released"],
  "a release counts as a takeover": ["a worker that releases gives everything back at once, and it is never counted"],
  "worker numbers are used again": ["worker numbers are never used again"],
  "a run is never blocked": [
    "after too many takeovers of an item without a commit its run is blocked with evidence",
    "after too many takeovers of its turn without a commit a run is blocked with evidence",
    "a node that too many workers died with blocks its flow, and the other nodes wait until it is resumed",
  ],
  "nobody is a suspect": [
    "chunks alone do not clear a suspect",
    "suspect turns are claimed before others, in groups that shrink with each takeover",
    "suspect items are claimed before others, in groups that shrink with each takeover",
    "suspects are spread over workers that claim at the same time",
  ],
  "a group of suspects is claimed with whatever comes next": [
    "suspect turns are claimed before others, in groups that shrink with each takeover",
    "suspect items are claimed before others, in groups that shrink with each takeover",
    "the highest level of suspects goes first, whatever its name, and others follow",
    "only what was alone three times is blocked",
  ],
  "a worker is given suspects whatever it holds": [
    "a worker that holds an isolated suspect is given no other one until it has committed",
    "a worker that holds an isolated item is given no other suspect",
  ],
  "a claim has room for one at most": [
    "the highest level of suspects goes first, whatever its name, and others follow",
  ],
  "a run is blocked at the first takeover": [
    "a commit starts the count of takeovers again",
    "a resumed run has its takeovers counted from the beginning",
  ],
  "a run's holder is whoever asks": ["who holds a run and its items, and when it last moved, can be read"],
  "a run moved when it was started": ["who holds a run and its items, and when it last moved, can be read"],
  "a store begins with a history": ["a store to which nothing happened has no history"],
  "a queue has room for one more": [
    "a queue has no more items out at once than its concurrency, whoever claims",
    "items without a queue pass a full one",
    "runs of a queue begin as many as fit, and one that ends makes room",
  ],
  "limits per key are ignored": [
    "a suspect whose queue has no room keeps no other suspect waiting",
    "an item whose key is taken lets others pass, and goes when the key is free",
    "a run whose key is taken lets others begin, and begins when the key is free",
    "the end of a run gives its items' keys back",
    "new limits let through what the old ones held back",
  ],
  "rates are ignored": [
    "a rate hands out its limit in any window of its time, and says when it goes on",
    "a rate per key holds back its key alone, and lets go on time",
  ],
  "rates are looked at a millisecond late": [
    "a rate hands out its limit in any window of its time, and says when it goes on",
    "a rate per key holds back its key alone, and lets go on time",
  ],
  "items forget their queue": [
    "a paused queue hands out nothing until it is resumed",
    "queues are listed with their limits and with what waits in them",
  ],
  "a key that is given back stays taken": [
    "whatever takes an item away gives its key back",
    "an item whose key is taken lets others pass, and goes when the key is free",
  ],
  "a queue cannot be paused": ["a paused queue hands out nothing until it is resumed"],
  "changed limits are not kept": ["what an operator changed stays until other limits are declared"],
  "a deployment undoes what an operator changed": ["what an operator changed stays until other limits are declared"],
  "a claim does not say when a rate lets go": [
    "a rate hands out its limit in any window of its time, and says when it goes on",
  ],
  "a claim does not say that something waits for a place": [
    "a queue has no more items out at once than its concurrency, whoever claims",
    "runs of a queue begin as many as fit, and one that ends makes room",
  ],
  "queues are counted as empty": ["queues are listed with their limits and with what waits in them"],
  "what waits is counted to the end": ["nothing is counted further than asked, and the least urgent is not forgotten"],
  "of what waits only the most urgent is looked at": [
    "nothing is counted further than asked, and the least urgent is not forgotten",
  ],
  "labels of what waits are forgotten": ["what waits is listed by what is needed to take it"],
  "names are cut where most of them end": ["a node waits and is claimed under the longest route there may be"],
  "what somebody holds waits": [
    "what is held, delayed or stopped does not wait to be taken",
    "suspects, and those that wait for their key, are part of what waits",
  ],
  "a delay is a millisecond short": [
    "a delayed run begins at its time, and no message makes it begin earlier",
    "a debounced start replaces what a run that has not begun was given, and when it begins",
  ],
  "runs forget their queue": [
    "children of a queue wait for room like other runs",
    "runs of a queue begin as many as fit, and one that ends makes room",
  ],
  "as many runs are let in as there are": ["runs of a queue begin as many as fit, and one that ends makes room"],
  "runs are let in whatever their version": [
    "a run of a version that nobody here has is not let in, and takes nobody's place",
  ],
  "a singleton is started again": ["a singleton start answers the live run with its key, whoever asks"],
  "a debounced start is a run of its own": [
    "a debounced start replaces what a run that has not begun was given, and when it begins",
  ],
  "of debounced starts the first one counts": [
    "a debounced start replaces what a run that has not begun was given, and when it begins",
  ],
  "nobody is told that a cancelled run had not begun": [
    "a run that is cancelled before it begins leaves its line, and its holder is told",
  ],
  "a list is oldest first": ["runs are listed newest first"],
  "a list ignores before": ["paging stays stable while runs are added"],
  "a list ignores tag": ["tags are matched whole, whatever characters they hold"],
  "a list ignores definition": ["a list holds the runs of one definition, some statuses, one tag"],
  "a list ignores kind": ["a list holds the runs of one kind"],
  "a list ignores statuses": ["a list holds the runs of one definition, some statuses, one tag"],
  "a list ignores its limit": ["runs are listed newest first"],
  "tags match by their beginning": ["tags are matched whole, whatever characters they hold"],
  "a journal is always read from its beginning": ["a journal is read from any entry on, as many as asked for"],
  "a journal is read without limit": ["a journal is read from any entry on, as many as asked for"],
  "an inbox is always read from its beginning": ["messages are numbered from 1 in the order they came"],
  "nobody notices other connections": ["a connection notices that another one wrote"],
  "info counts nothing": ["info counts runs by status and items by state"],
  "prune does not look at the age": [
    "prune removes runs that ended before the given moment, and only those",
    "a family is pruned whole, and only when all of it has ended long enough ago",
  ],
  "a dry run prunes": ["a dry run of prune counts what it would remove, families whole, and removes nothing"],
  "prune removes nothing": ["a pruned id is free again"],
  "prune takes runs one by one": ["a live child keeps its parent and its siblings"],
  "writing payloads anew is heard as a message": ["writing every payload anew changes nothing that can be read"],
  "a backup is empty": ["a backup opens as a store with the same runs and can go on with them"],
  "check counts beyond its total": ["a healthy store reports progress and no problem"],
  "check finds what is not there": ["concurrent starts of one id on two connections start it once"],
  "time is the wall clock's": [
    "time never goes backwards when the wall clock does, and does not stand still",
    "a connection opened after the wall clock was set back goes on from what was written",
  ],
  "time stands still": ["time moves with the clock"],
  "a connection sees only the runs it started itself": ["what was answered is there for a connection opened later"],
  "a journal is read backwards": ["a commit appends its entries densely and moves head and chain"],
  "how long a call took is forgotten when it took no time": [
    "an entry keeps how long its call took, and others have no such thing",
  ],
  "payloads are normalised": ["a payload of umlauts, composed and decomposed comes back byte for byte"],
  "payloads are kept as JSON, not as text": [
    "a payload of unusual spacing and key order comes back byte for byte",
    "a payload of a number beyond a double comes back byte for byte",
  ],
  "payloads are trimmed": ["a payload of trailing spaces comes back byte for byte"],
  "payloads end at NUL": ["a payload of control characters and NUL comes back byte for byte"],
  "payloads lose what is beyond the basic plane": [
    "a payload of emoji with joiners comes back byte for byte",
    "a payload of the noncharacters at the end of planes comes back byte for byte",
  ],
  "payloads lose line separators and byte order marks": [
    "a payload of line separators comes back byte for byte",
    "a payload of right to left and a byte order mark comes back byte for byte",
  ],
  "payloads end after 64 KB": ["a payload of a megabyte comes back byte for byte"],
  "payloads are unescaped once too often": ["a payload of quotes and backslashes comes back byte for byte"],
  "an empty payload is null": [
    "a payload of an empty object comes back byte for byte",
    "a payload of nothing comes back byte for byte",
    "a payload of a quoted empty text comes back byte for byte",
  ],
  "the ids of messages are not looked at": [
    "a second message with the same id is a duplicate, whatever it carries",
    "the id of a message is remembered for a day, and then forgotten",
  ],
  "the id of a message is taken for a target": ["the id of a message is not the name of a target that takes one"],
  "the ids of messages are never forgotten": ["the id of a message is remembered for a day, and then forgotten"],
  "what the code never took is not counted": [
    "an end counts what is in the journal and was never taken to what was never read",
  ],
  "a run says it has taken in whatever came": [
    "a run says how many messages came, and how many of them it has taken in",
  ],
  "nobody is told whom a turn's messages reached": ["a turn says which children its messages by id have reached"],
  "nobody notes that a run takes updates": ["a run that takes updates may wait for nothing that stands in its journal"],
  "chunks are not kept": ["chunks get dense offsets from 1 per stream, in the order they were emitted"],
  "chunks of a commit are written in reverse": ["a stream is read behind an offset, as many chunks as asked for"],
  "a chunk is written as often as it is said": ["a chunk of the code that is in already is not written again"],
  "an operation's chunks are counted as the code's": [
    "a store knows how many chunks the code has emitted, an operation's not among them",
  ],
  "all streams of a run are one": ["chunks get dense offsets from 1 per stream, in the order they were emitted"],
  "a stream is always read from its beginning": ["a stream is read behind an offset, as many chunks as asked for"],
  "a stream is read without limit": ["a stream is read behind an offset, as many chunks as asked for"],
  "chunks are trimmed": ["a chunk comes back byte for byte"],
  "chunks outlive their pruned run": ["streams outlive their run and go when it is pruned"],
  "the token of a schedule is not checked": [
    "of two who read the same schedule the first one writes, the second one nothing",
    "a schedule that is there is not made a second time",
    "a removed schedule is gone with its token, also when one of its name is made again",
  ],
  "a void write of a schedule is answered committed": [
    "of two who read the same schedule the first one writes, the second one nothing",
    "a time that two connections fire at once is fired by one of them",
  ],
  "the runs of a schedule are started apart from its row": [
    "of two who read the same schedule the first one writes, the second one nothing",
    "a firing starts its runs with the row, and leaves a run alone whose id is taken",
    "a time that two connections fire at once is fired by one of them",
  ],
  "a firing starts nothing": ["a firing starts its runs with the row, and leaves a run alone whose id is taken"],
  "the run in a schedule's way is not cancelled": ["a firing can cancel the run in its way, if it is still alive"],
  "a schedule loses its input": ["a schedule comes back as it was put"],
  "a removed schedule stays": ["a removed schedule is gone with its token, also when one of its name is made again"],
  "schedules are due for whoever asks": [
    "due are the schedules of the named definitions whose time has come; the next time is known",
  ],
  "a schedule is due before its time": [
    "due are the schedules of the named definitions whose time has come; the next time is known",
  ],
  "a paused schedule is due": ["a schedule that is paused or has no more times is not due"],
  "whoever is in line is due at once": [
    "a schedule that is paused or has no more times is not due",
    "a schedule with a time in line is due once its last run has ended, or is gone",
  ],
  "whoever is in line waits for ever": [
    "a schedule with a time in line is due once its last run has ended, or is gone",
  ],
  "schedules are listed backwards": ["schedules are listed by name, page by page"],
  "no message ever makes a run expected": [
    "a message before the start makes the run expected: a row without a journal, due to nobody",
    "a target that takes one message has taken it, also before the start",
    "of a start and messages that race for an id none is lost, whoever is first",
    "a child can be spoken to before it is started",
  ],
  "every message makes a run expected": [
    "a message that does not expect a run is refused without one, and nothing is written",
  ],
  "an expected run looks like any other": [
    "a message before the start makes the run expected: a row without a journal, due to nobody",
  ],
  "a start does not look at what is expected": [
    "what is expected to follow one definition cannot be started with another",
  ],
  "a start forgets the messages that come with it": [
    "a start turns an expected run into the run, and its messages are kept in order",
  ],
  "the definition of a message is not looked at": ["a message to a run of another definition is refused"],
  "an expectation cannot be cancelled": ["a cancelled expectation is gone, and its id is free"],
  "an expectation is pruned at once": ["an expectation nobody met goes with retention, and not before"],
  "an expectation is never pruned": ["an expectation nobody met goes with retention, and not before"],
  "a start answers an expected run without its messages": [
    "a start turns an expected run into the run, and its messages are kept in order",
  ],
  "a start wins over messages that came before": [
    "a start turns an expected run into the run, and its messages are kept in order",
    "an expected run that is started without a claim is due, with its messages",
  ],
  "user SQL runs twice": ["user SQL and its entry are committed together"],
  "user SQL is kept although the fence does not hold": ["user SQL goes with the commit whose fence does not hold"],
  "user SQL is kept although its function threw": [
    "user SQL whose function throws is rolled back, and its error is the answer",
  ],
  "user SQL that nobody wants is kept": ["user SQL that nobody wants any more is rolled back"],
  "a next generation keeps the version of the one before": [
    "a run that continues goes on under its id, with a new number and a journal of its own",
  ],
  "a next generation is nobody's, although it was claimed": [
    "the next generation is due at once, or its starter's when it came with a claim",
  ],
  "what was carried is lost": [
    "messages go over in order: first those that were carried, then those nobody had read",
    "ids of messages and values of promises that went over are remembered",
  ],
  "the next generation is not answered": ["who sends or starts by id finds the newest generation"],
  "a start by id is compared with the newest generation": ["who sends or starts by id finds the newest generation"],
  "ids of messages are forgotten with their generation": [
    "ids of messages and values of promises that went over are remembered",
  ],
  "unread messages stay with the generation that ends": [
    "messages go over in order: first those that were carried, then those nobody had read",
  ],
  "answers to old commands reach the next generation": [
    "what answers a command of the old generation does not reach the next",
  ],
  "a next generation knows no parent": [
    "a next generation answers the parent of the first, and hears what its parent says to it",
  ],
  "a generation is pruned when it has ended": ["generations are pruned together, when the last has ended"],
  "turns of all versions are claimed": [
    "only turns of the wanted versions are claimed, however many of others are due",
  ],
  "versions are counted without a look at them": ["live and due runs are counted by version, ended ones are not"],
  "a next generation knows no pause": ["a pause that comes before the run continues holds for the next generation"],
  "messages to the outside are not kept": [
    "a message is claimed with what its delivery needs",
    "a store says how many messages it has, how many failed, and since when",
  ],
  "a message is next when the one before it is claimed": [
    "a run's messages come one after the other, whatever their destination",
    "a message is delivered and given back by its token only, and once",
  ],
  "a claim of messages takes one run at a time": ["messages of different runs do not wait for each other"],
  "a claim of messages knows no destination": ["only named destinations are claimed"],
  "a message comes without its payload": ["messages outlive the end of their run, and keep it from being pruned"],
  "the attempts of a message are forgotten": [
    "a message given back comes again when it is due, with its attempts, before those behind it",
  ],
  "a delivery never says that there is more": ["a run's messages come one after the other, whatever their destination"],
  "a void delivery is taken for a good one": ["a message is delivered and given back by its token only, and once"],
  "a message that failed is next at once": [
    "a message given back comes again when it is due, with its attempts, before those behind it",
  ],
  "a message given back stays where it is": [
    "a message given back comes again when it is due, with its attempts, before those behind it",
  ],
  "prune takes runs with messages along": ["messages outlive the end of their run, and keep it from being pruned"],
  "a message that was taken over counts no attempt": [
    "a dead worker's message goes to another, later with every death",
  ],
  "a goodbye keeps what the worker holds": ["a worker that says goodbye gives its messages back at once"],
  "info does not know the outbox": ["a store says how many messages it has, how many failed, and since when"],
  "checkpoints are not kept": [
    "a checkpoint is committed with its step, and read back as it was written",
    "checkpoints outlive their run and go when it is pruned",
  ],
  "labels are not kept": ["a checkpoint is committed with its step, and read back as it was written"],
  "every checkpoint looks whole": ["a checkpoint is committed with its step, and read back as it was written"],
  "a checkpoint that is in already is a conflict": [
    "duplicate commit: a step that is in with the same key is already committed, whoever says it again",
    "100-way race: of 100 who commit one checkpoint at once, one does, and 99 learn that it is in",
  ],
  "another state is taken for the same checkpoint": [
    "same step, different state: from the holder it is a conflict, and the first one is kept with the evidence",
    "a key is used once in the whole store",
  ],
  "whoever commits a checkpoint counts as the holder": [
    "same step, different state: whoever lost the turn is told so, and changes nothing",
    "a void commit leaves no checkpoint",
  ],
  "keys are unique per run only": ["a key is used once in the whole store"],
  "checkpoints are read without limit": ["a checkpoint is committed with its step, and read back as it was written"],
  "the newest checkpoint is taken for the newest whole one": [
    "a checkpoint is committed with its step, and read back as it was written",
  ],
  "checkpoints outlive their pruned run": ["checkpoints outlive their run and go when it is pruned"],
  "a fork says it has no entry but its first": [
    "a fork is there at once: two entries, its checkpoint, and a turn that is due",
  ],
  "a fork does not keep its label": ["a fork is there at once: two entries, its checkpoint, and a turn that is due"],
  "a fork is made from whatever checkpoint is there": [
    "a fork of a checkpoint that is not there, or is another one, is not made",
  ],
  "a fork replaces the run that has its id": [
    "a fork under an id that is taken answers with what is there, and changes nothing",
  ],
  "a run is pruned though a fork of it stays": [
    "a run is kept for as long as a fork of it is, and goes with the last one",
  ],
  "promises of a fork take a second value": ["a promise that has its value when the fork is made takes no other"],
  "steps are read from the journal's numbers": [
    "the entries of steps are read by themselves, between two steps and no more than asked for",
  ],
  "the oldest checkpoint with a label is found": ["the newest checkpoint with a label is found, up to a step"],
  "a label is looked for in all steps": ["the newest checkpoint with a label is found, up to a step"],
  "the token of a node is not checked": [
    "a completion that comes twice, or with an old token, is stale and writes nothing",
    "a node whose worker died is queued again, and what the dead one says is stale",
  ],
  "a stale completion is answered committed": [
    "a completion under a turn that was given back is stale",
    "a completion for a run that has ended, or is not there, is stale",
    "a flow ends once: the first output is kept, the second completion is stale, and what was queued is gone",
  ],
  "arrivals get lost": [
    "a node is queued by the completion that brings its last arrival, in whatever order",
    "of connections that bring a node's arrivals at the same time, one queues it",
  ],
  "a node is queued only by an arrival that comes alone": [
    "arrivals with different edges, indexes and targets are all counted",
  ],
  "an arrival that comes again counts again": [
    "a second arrival with the same target, edge and index is stored once and counted once",
  ],
  "edges are not told apart": [
    "of a node's arrivals in one batch, the last one queues it, once",
    "arrivals with different edges, indexes and targets are all counted",
  ],
  "an arrival too many is dropped in silence": [
    "a third arrival for a node that waits for two blocks the run with evidence, counters stay",
    "an arrival for a barrier whose spread has not run blocks the run",
  ],
  "`required` is not compared": [
    "another `required` than the first blocks the run with evidence, and nothing else is written",
  ],
  "a completion that may not be is answered stale": [
    "a third arrival for a node that waits for two blocks the run with evidence, counters stay",
    "items that are spread a second time block the run",
  ],
  "a completion says that its entries are the first": [
    "completions of one run share a batch: entries are dense, in the order of the writes, and chained",
  ],
  "inputs come in the order they were written": [
    "what came for a node is read in one go: by target, edge and index, with the entries that hold it",
  ],
  "inputs come by their index as text": [
    "twelve items that end in reverse are read by their index, as numbers, not as text",
  ],
  "a spread queues everything at once": [
    "of a spread no more items are queued at once than its window, one more for each that ends",
  ],
  "a spread of no items queues nothing": ["a spread of no items queues its barrier in the same commit"],
  "an item that ends lets none in": [
    "items that end in one batch let as many others in, none twice",
    "a paused flow's spread goes on counting, and its items wait",
  ],
  "leases on nodes are not given": ["items and barriers that were asked for are leased by the commit that queues them"],
  "a flow looks as if it were always at work": [
    "a flow's turn is given back by its completion: running with nodes in the queue, waiting without",
  ],
  "a completion never says that more has come": [
    "what arrives while a flow's turn is held makes it due again, and `more` says so",
    "a node's child whose id is taken puts `taken` into the flow's inbox",
  ],
  "nodes are taken for tasks": ["a node is claimed by its route, and says which entry its row names"],
  "nodes stand in no line": ["nodes and tasks of one queue share its places, and a completion frees the key"],
  "a flow that is paused goes on": [
    "while a flow is paused, what becomes ready is stopped until it is resumed, and nothing is leased",
    "a paused flow's spread goes on counting, and its items wait",
  ],
  "due nodes are not counted": [
    "nodes that are ready and that nobody has taken are counted by flow, version and queue",
  ],
  "a flow never ends": [
    "a flow ends once: the first output is kept, the second completion is stale, and what was queued is gone",
    "a flow that ends while somebody holds its turn takes the turn away",
    "an end with more nodes than one transaction should delete leaves none to claim or to complete",
  ],
  "messages of a completion get lost": ["a flow that ends answers its parent and tells the children that live"],
  "live children of a flow are not told of its end": [
    "a flow that ends answers its parent and tells the children that live",
  ],
  "children of nodes are not started": ["a node's child whose id is taken puts `taken` into the flow's inbox"],
  "a retry forgets the nodes": [
    "a failed flow that is retried has the nodes of the plan ready again, and its counters as they were",
  ],
  "what was counted outlives its pruned run": [
    "what was counted for the nodes of a flow goes with its pruned run, and with no other",
  ],
};
