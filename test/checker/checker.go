package checker

import (
	"fmt"
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Log is one conversation's log, in order.
type Log struct {
	Tenant, Conversation string
	Commits              []Stored
}

// Stored is one commit as it lies in the log.
type Stored struct {
	// Sealed is the commit's bytes.
	Sealed []byte
	// Subject, Header and Time are those of the message on the stream; Header is
	// nil and Time zero for commits that did not come from one.
	Subject string
	Header  map[string][]string
	Time    time.Time
}

// Request is one call as the model server saw it: what its headers named, and
// the body, byte for byte, in the order of arrival.
type Request struct {
	Conversation, Member, Run, Step string
	Body                            []byte
	// Time of arrival; zero where nobody looked at a clock.
	Time time.Time
}

// Finding is one thing that must not be.
type Finding struct {
	// Rule is the name of the rule it breaks.
	Rule         string
	Conversation string
	// Version of the commit and kind of the event where it shows; 0 and empty
	// where it is no commit's.
	Version uint64
	Event   string
	What    string
}

func (f Finding) String() string {
	at := "conversation " + f.Conversation
	if f.Version > 0 {
		at += fmt.Sprintf(", version %d", f.Version)
	}
	if f.Event != "" {
		at += ", " + f.Event
	}
	return fmt.Sprintf("%s: %s [%s]", at, f.What, f.Rule)
}

// CheckAll judges all logs of an installation against the model server's record.
func CheckAll(logs []Log, record []Request) []Finding {
	var found []Finding
	known := map[string]bool{}
	for _, l := range logs {
		known[l.Conversation] = true
		found = append(found, Check(l, record)...)
	}
	found = append(found, claims(logs)...)
	for i, r := range record {
		if !known[r.Conversation] {
			found = append(found, Finding{
				Rule: "called", Conversation: r.Conversation,
				What: fmt.Sprintf("request %d of the record, by %q, is of a conversation that has no log", i+1, r.Member),
			})
		}
	}
	return found
}

// Check judges one log against the record; calls of other conversations are
// left out.
func Check(l Log, record []Request) []Finding {
	r := read(l)
	var own []Request
	for _, q := range record {
		if q.Conversation == l.Conversation {
			own = append(own, q)
		}
	}
	r.place("")
	r.version = 0
	for _, w := range r.watchers {
		if w.record != nil {
			w.record(own)
		}
	}
	return r.found
}

// CheckLog judges a log where there is no record of a model server.
func CheckLog(l Log) []Finding { return read(l).found }

// reading is one log being read.
type reading struct {
	*book
	watchers []watcher
	found    []Finding
	event    string
}

// read judges a log event by event. After a commit that does not follow the one
// before nothing more is read: what comes behind cannot be trusted.
func read(l Log) *reading {
	r := &reading{book: newBook(l)}
	for _, rule := range rules {
		r.watchers = append(r.watchers, rule.watch(r.book, func(format string, args ...any) { r.tell(rule.name, format, args...) }))
	}
	var previous []byte
	for i, stored := range l.Commits {
		r.version = uint64(i) + 1
		c, wrong := follows(stored.Sealed, r.version, previous)
		if wrong != "" {
			r.tell("chain", "%s; nothing after it was read", wrong)
			break
		}
		previous = c.GetHash()
		r.commit(stored, c)
	}
	return r
}

func (r *reading) commit(stored Stored, c *rollcallv1.Commit) {
	r.stored, r.current = stored, c
	r.place("")
	for _, w := range r.watchers {
		if w.commit != nil {
			w.commit(c)
		}
	}
	for i, e := range c.GetEvents() {
		f := factOf(e, r.version, i)
		r.place(f.name())
		for _, w := range r.watchers {
			if w.event != nil {
				w.event(f)
			}
		}
		r.enter(f)
	}
	r.place("")
	for _, w := range r.watchers {
		if w.end != nil {
			w.end(c)
		}
	}
	r.closeCommit()
}

// place says where in a commit the reading stands.
func (r *reading) place(event string) { r.event = event }

func (r *reading) tell(rule, format string, args ...any) {
	r.found = append(r.found, Finding{
		Rule: rule, Conversation: r.log.Conversation, Version: r.version, Event: r.event, What: fmt.Sprintf(format, args...),
	})
}
