package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// book is the checker's own account of a conversation as far as it was read. It
// refuses nothing: what must not be is for the rules to say, and the book goes
// on with what the log claims.
type book struct {
	log     Log
	version uint64
	stored  Stored
	current *rollcallv1.Commit

	contract string
	paused   bool
	members  map[string]*member
	// order is the members as they joined.
	order []*member
	teams map[string]*team
	mail  map[string]*letter
	runs  map[string]*run
	tasks map[string]*task
	// approvals of calls, by id.
	approvals map[string]*approval
	// bound are the definitions that runs are pinned to, by hash.
	bound map[string]*rollcallv1.AgentBound

	budget *rollcallv1.Budget
	tokens uint64
	micros uint64

	// performing is the run whose calls are being decided in this commit: what
	// happens is its next call's doing.
	performing *run
	// letters are those delivered in this commit, ended the runs that ended in it.
	letters []*letter
	ended   []*run
}

type member struct {
	id, name string
	role     rollcallv1.MemberRole
	team     string
	// task is its assignment, where members have one.
	task string
	// caller and forCall of a subagent: who called it, by which call.
	caller, forCall string
	// gone after MemberShutdown; spawning until its first run.
	gone, spawning bool
	unread         []*letter
	// run is the open run.
	run *run
	// waits are the questions it sleeps on, by message.
	waits map[string]*letter
	// held is why unread mail starts no run; empty when it does.
	held string
	// broke is true while a budget holds it.
	broke bool
}

type team struct {
	id     string
	active bool
}

func newBook(l Log) *book {
	return &book{
		log: l, members: map[string]*member{}, teams: map[string]*team{}, mail: map[string]*letter{}, runs: map[string]*run{},
		tasks: map[string]*task{}, bound: map[string]*rollcallv1.AgentBound{}, approvals: map[string]*approval{},
	}
}

// who is a member for the books: one that nobody added gets an account too.
func (b *book) who(id string) *member {
	if b.members[id] == nil {
		b.members[id] = &member{id: id, waits: map[string]*letter{}}
		b.order = append(b.order, b.members[id])
	}
	return b.members[id]
}

// String names a member for people.
func (m *member) String() string {
	if m.name == "" || m.name == m.id {
		return m.id
	}
	return m.id + " (" + m.name + ")"
}

// spent reports whether the conversation's budget is used up.
func (b *book) spent() bool {
	t, c := b.budget.GetTokens(), b.budget.GetCostMicros()
	return t > 0 && b.tokens >= t || c > 0 && b.micros >= c
}

// activeTeam is the one that is not dissolved.
func (b *book) activeTeam() *team {
	for _, t := range b.teams {
		if t.active {
			return t
		}
	}
	return nil
}

// enter takes an event into the books.
func (b *book) enter(f fact) {
	if !b.enterTeam(f) && !b.enterMail(f) && !b.enterBoard(f) {
		b.enterRun(f)
	}
}

func (b *book) enterTeam(f fact) bool {
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_ConversationOpened:
		b.contract, b.budget = k.ConversationOpened.GetContract(), k.ConversationOpened.GetBudget()
	case *rollcallv1.Event_ConversationPaused:
		b.paused = true
	case *rollcallv1.Event_ConversationResumed:
		b.paused = false
	case *rollcallv1.Event_TeamCreated:
		b.teams[k.TeamCreated.GetTeam()] = &team{id: k.TeamCreated.GetTeam(), active: true}
	case *rollcallv1.Event_TeamDissolved:
		if t := b.teams[k.TeamDissolved.GetTeam()]; t != nil {
			t.active = false
		}
	case *rollcallv1.Event_MemberAdded:
		a := k.MemberAdded
		m := b.who(a.GetMember())
		m.name, m.role, m.team, m.task, m.spawning = a.GetName(), a.GetRole(), a.GetTeam(), a.GetTask(), !a.GetReady()
	case *rollcallv1.Event_MemberShutdown:
		m := b.who(k.MemberShutdown.GetMember())
		if m.run != nil {
			m.run.open = false
		}
		m.gone, m.run, m.unread, m.held, m.broke = true, nil, nil, "", false
		clear(m.waits)
	case *rollcallv1.Event_BudgetRaised:
		b.raised(k.BudgetRaised.GetBudget())
	default:
		return false
	}
	return true
}

// raised sets the limits that are named; none at all is no limit.
func (b *book) raised(to *rollcallv1.Budget) {
	next := &rollcallv1.Budget{Tokens: b.budget.GetTokens(), CostMicros: b.budget.GetCostMicros()}
	if to.GetTokens() > 0 {
		next.Tokens = to.GetTokens()
	}
	if to.GetCostMicros() > 0 {
		next.CostMicros = to.GetCostMicros()
	}
	if to.GetTokens() == 0 && to.GetCostMicros() == 0 && to.GetSteps() == 0 {
		next = nil
	}
	b.budget = next
	for _, m := range b.order {
		if m.broke {
			m.held, m.broke = "", false
		}
	}
}

// closeCommit notes the calls that the commit leaves open, and forgets what is
// kept within one commit.
func (b *book) closeCommit() {
	for _, m := range b.order {
		if r := m.run; r != nil && r.calling && r.called == b.version {
			r.sent[r.step] = append(r.sent[r.step], b.stored)
		}
	}
	b.performing, b.letters, b.ended = nil, nil, nil
}

// endedHere is the run of the member that ended in this commit, for a reason.
func (b *book) endedHere(member string, reason rollcallv1.FinishReason) bool {
	return slices.ContainsFunc(b.ended, func(r *run) bool { return r.member.id == member && r.reason == reason })
}
