package checker

import rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"

// rule is one thing that must hold of every log.
type rule struct {
	name string
	// promise is the sentence that it holds to.
	promise string
	watch   func(b *book, say say) watcher
}

// say reports that the rule is broken where the reading stands.
type say func(format string, args ...any)

// watcher looks on while a log is read. All its parts may be nil.
type watcher struct {
	// commit is called with each commit before its events are read.
	commit func(*rollcallv1.Commit)
	// event is called with each event before it is entered into the books.
	event func(fact)
	// end is called with each commit after its last event was entered.
	end func(*rollcallv1.Commit)
	// record is called after the last commit with the calls that the model
	// server recorded of this conversation.
	record func([]Request)
}

// rules are all but chain, which decides what is read at all.
var rules = []rule{
	{"commit-id", "every commit has an id of its own, and its headers say what it says", commitIDs},
	{"epoch", "nothing is written with a lower epoch after a higher one; one node writes an epoch", epochs},
	{"command-once", "a command has its effect once", commandsOnce},
	{"opening", "a conversation is opened once, first, under the name it is stored by", openings},
	{"roster", "members and teams have names and ids of their own; who is shut down stays so", rosters},
	{"mail", "a message has an id of its own, a speaker who may say it, and a living recipient", mails},
	{"justified", "a run starts from unread mail of a waking kind, and from nothing else", justifications},
	{"consumed", "mail is read once, by whom it is for, in order, and before the next call", consumptions},
	{"returned", "mail that no model answered is unread again when its run ends", returns},
	{"one-run", "at most one open run a member, at any version", oneRuns},
	{"in-open-run", "whatever happens in a run happens while it is open", openRuns},
	{"may-run", "nobody begins who is paused, shut down, held back, out of budget or without its brief", mayRuns},
	{"wakes", "nobody who could work sleeps over mail that wakes", wakings},
	{"steps", "steps and attempts follow each other; a call is made again only after a failure or a lost node", steps},
	{"resumed", "a run is taken up only when it was let go or lost", resumptions},
	{"calls", "each tool call has one outcome, in the order asked, and none after a cut reply", calls},
	{"bound", "a run is pinned to one definition, and calls its tools as they were declared", bindings},
	{"approvals", "a call that needs approval is made when it has one; the first answer counts, and none outlives its run", approvals},
	{"subagents", "what a subagent comes to is the outcome of the call it works for, once, and with the call it is gone", subagents},
	{"endings", "a run ends for the reason it gives", endings},
	{"coordination", "what a coordination tool does, and its outcome, are one commit, once", coordinations},
	{"operator", "what the operator did came by a command", operators},
	{"board", "tasks change as their state allows, and follow their dependencies", boards},
	{"waits", "a wait begins with a question and ends by its answer or a recorded reason", waits},
	{"files", "files change with the outcome of a call, or by a command", fileChanges},
	{"called", "the model server was called only as the log began to, and not more often", called},
	{"answered", "every reply in the log was asked for at the model server", answered},
}

// Rules are the names of all rules.
func Rules() []string {
	names := []string{"chain"}
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}
