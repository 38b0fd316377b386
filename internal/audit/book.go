package audit

import (
	"slices"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// book keeps account of mail and runs by reading events one by one. It shares
// nothing with the fold that decides, so that a mistake there shows here.
type book struct {
	report  *Report
	mail    map[string]*letter
	members []*account
	runs    map[string]*ledger
}

type letter struct {
	to     string
	unread bool
}

// account is a member's runs.
type account struct {
	Member
	runs []*ledger
	open *ledger
}

type ledger struct {
	Run
	member *account
}

func newBook(r *Report) *book {
	return &book{report: r, mail: map[string]*letter{}, runs: map[string]*ledger{}}
}

func (b *book) event(version uint64, e *rollcallv1.Event) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_SubagentStarted:
		s := k.SubagentStarted
		b.members = append(b.members, &account{Member: Member{ID: s.GetSubagent(), Name: s.GetName(), Runs: []Run{}}})
	case *rollcallv1.Event_MemberAdded:
		b.members = append(b.members, &account{Member: Member{ID: k.MemberAdded.GetMember(), Name: k.MemberAdded.GetName(), Runs: []Run{}}})
	case *rollcallv1.Event_MessageDelivered:
		m := k.MessageDelivered
		if b.mail[m.GetMessage()] != nil {
			b.report.problem(version, "message-twice", "message %s was delivered before", m.GetMessage())
		}
		b.mail[m.GetMessage()] = &letter{to: m.GetTo(), unread: true}
	case *rollcallv1.Event_RunStarted:
		b.start(version, k.RunStarted)
	case *rollcallv1.Event_MessagesConsumed:
		c := k.MessagesConsumed
		if r := b.run(version, c.GetRun()); r != nil {
			r.Read = append(r.Read, b.consume(version, r, c.GetMessages())...)
		}
	case *rollcallv1.Event_MessagesReturned:
		for _, m := range k.MessagesReturned.GetMessages() {
			if l := b.mail[m.GetMessage()]; l == nil || l.unread {
				b.report.problem(version, "return-unexplained", "message %s is returned and was not consumed", m.GetMessage())
			} else {
				l.unread = true
			}
		}
	case *rollcallv1.Event_ModelCallStarted:
		b.call(version, k.ModelCallStarted)
	case *rollcallv1.Event_ModelReplied:
		if r := b.run(version, k.ModelReplied.GetRun()); r != nil {
			r.member.Answered++
		}
	case *rollcallv1.Event_ModelCallFailed:
		b.run(version, k.ModelCallFailed.GetRun())
	case *rollcallv1.Event_ToolCallFinished:
		if r := b.run(version, k.ToolCallFinished.GetRun()); r != nil && k.ToolCallFinished.GetUnknown() {
			r.member.Unknown++
		}
	case *rollcallv1.Event_RunResumed:
		if r := b.run(version, k.RunResumed.GetRun()); r != nil && !k.RunResumed.GetWaited() {
			r.Resumed++
		}
	case *rollcallv1.Event_RunFinished:
		if r := b.run(version, k.RunFinished.GetRun()); r != nil {
			r.Finish, r.member.open = domain.Word(k.RunFinished.GetReason()), nil
		}
	}
}

func (b *book) start(version uint64, e *rollcallv1.RunStarted) {
	i := slices.IndexFunc(b.members, func(a *account) bool { return a.ID == e.GetMember() })
	if i < 0 {
		b.report.problem(version, "run-of-nobody", "run %s is of %s, who is no member", e.GetRun(), e.GetMember())
		return
	}
	a := b.members[i]
	if a.open != nil {
		b.report.problem(version, "two-runs", "run %s of %s starts while run %s is open", e.GetRun(), a.Name, a.open.ID)
	}
	if b.runs[e.GetRun()] != nil {
		b.report.problem(version, "run-twice", "run %s was started before", e.GetRun())
	}
	r := &ledger{Run: Run{ID: e.GetRun(), Finish: "open", Started: []string{}}, member: a}
	a.runs, a.open, b.runs[e.GetRun()] = append(a.runs, r), r, r
	if len(e.GetConsumed()) == 0 {
		b.report.problem(version, "run-unjustified", "run %s of %s starts without a message", e.GetRun(), a.Name)
	}
	r.Started = append(r.Started, b.consume(version, r, e.GetConsumed())...)
}

// consume reads mail on behalf of a run.
func (b *book) consume(version uint64, r *ledger, refs []*rollcallv1.MessageRef) (ids []string) {
	for _, ref := range refs {
		id := ref.GetMessage()
		ids = append(ids, id)
		switch l := b.mail[id]; {
		case l == nil:
			b.report.problem(version, "run-unjustified", "run %s consumes message %s, which was never delivered", r.ID, id)
		case l.to != r.member.ID:
			b.report.problem(version, "mail-of-another", "run %s of %s consumes message %s, which is for %s", r.ID, r.member.Name, id, l.to)
		case !l.unread:
			b.report.problem(version, "consumed-twice", "run %s consumes message %s, which was consumed before and not returned", r.ID, id)
		default:
			l.unread = false
		}
	}
	return ids
}

func (b *book) call(version uint64, e *rollcallv1.ModelCallStarted) {
	r := b.run(version, e.GetRun())
	if r == nil {
		return
	}
	r.Calls++
	r.member.Calls++
}

// run finds an open run; an event of any other is a problem.
func (b *book) run(version uint64, id string) *ledger {
	r := b.runs[id]
	if r == nil || r.member.open != r {
		b.report.problem(version, "run-not-open", "something happens in run %s, which is not open", id)
		return nil
	}
	return r
}

// close puts the accounts into the report.
func (b *book) close() {
	for _, a := range b.members {
		for _, r := range a.runs {
			a.Runs = append(a.Runs, r.Run)
		}
		a.Unanswered = a.Calls - a.Answered
		b.report.Members = append(b.report.Members, a.Member)
	}
}
