package eval

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// book is a conversation's log, put in order by who and what. Places in it count
// events from 1, so that what stands in one commit has an order too.
type book struct {
	members  []*member
	tasks    []*task
	runs     []*run
	waits    []*wait
	calls    []*call
	mail     []mail
	activity []activity
	teams    int
	replies  []*rollcallv1.Body
	written  []written
	models   []string
	agents   []string
	first    time.Time
	last     time.Time
	events   int
	version  uint64

	open map[string]*call // by run and call, until they have an outcome
}

type member struct {
	id, name, task string
	lead           bool
}

type task struct {
	id, text, owner, by string // owner is a display name, by a member's id
	needs               []string
	made                int
	done                []int
	// ended are the places where it failed or was cancelled.
	ended    []int
	reopened []reopening
	paths    []string
	stale    bool
	open     bool
}

type reopening struct {
	at int
	by string
}

type run struct {
	id, member  string
	from, to    int
	reason      rollcallv1.FinishReason
	code        string
	undelivered []string
}

type wait struct {
	member, message, awaited string
	from, to                 int
	reason                   string
}

type call struct {
	member, run, name, args, output, code string
	at                                    int
	failed                                bool
}

type mail struct {
	at       int
	kind     rollcallv1.MailKind
	from, to string
	text     string
	topic    string
	// quiet: it wakes nobody, because members had only woken each other.
	quiet bool
}

// activity is anything that a member's run does by itself.
type activity struct {
	at      int
	version uint64
	what    string
	member  string
}

type written struct{ member, path, sum string }

// read makes the book of a log.
func read(commits []*rollcallv1.Commit) *book {
	b := &book{open: map[string]*call{}}
	for _, c := range commits {
		at := c.GetTime().AsTime()
		if b.first.IsZero() {
			b.first = at
		}
		b.last, b.version = at, c.GetVersion()
		for _, e := range c.GetEvents() {
			b.events++
			b.team(e)
			b.work(e)
			b.running(e)
		}
	}
	return b
}

func (b *book) team(e *rollcallv1.Event) {
	switch {
	case e.GetTeamCreated() != nil:
		b.teams++
	case e.GetMemberAdded() != nil:
		m := e.GetMemberAdded()
		b.members = append(b.members, &member{
			id: m.GetMember(), name: m.GetName(), task: m.GetTask(), lead: m.GetRole() == rollcallv1.MemberRole_MEMBER_ROLE_LEAD,
		})
	case e.GetSubagentStarted() != nil:
		s := e.GetSubagentStarted()
		b.members = append(b.members, &member{id: s.GetSubagent(), name: s.GetName()})
	case e.GetMessageDelivered() != nil:
		m := e.GetMessageDelivered()
		b.mail = append(b.mail, mail{at: b.events, kind: m.GetKind(), from: m.GetFrom(), to: m.GetTo(), text: m.GetBody().GetText(), topic: m.GetTopic(), quiet: m.GetQuiet()})
	case e.GetLeadReplied() != nil:
		b.replies = append(b.replies, e.GetLeadReplied().GetText())
	case e.GetWaitStarted() != nil:
		w := e.GetWaitStarted()
		b.waits = append(b.waits, &wait{member: w.GetMember(), message: w.GetMessage(), awaited: w.GetAwaited(), from: b.events})
	case e.GetWaitEnded() != nil:
		for _, w := range b.waits {
			if w.message == e.GetWaitEnded().GetMessage() && w.to == 0 {
				w.to, w.reason = b.events, e.GetWaitEnded().GetReason()
			}
		}
	case e.GetFileWritten() != nil:
		f := e.GetFileWritten()
		b.written = append(b.written, written{f.GetMember(), f.GetPath(), f.GetBlob().GetSha256()})
	}
}

func (b *book) work(e *rollcallv1.Event) {
	switch {
	case e.GetTaskCreated() != nil:
		t := e.GetTaskCreated()
		b.tasks = append(b.tasks, &task{
			id: t.GetTask(), text: t.GetTitle() + "\n" + t.GetDescription(), owner: t.GetOwner(), needs: t.GetDependencies(), made: b.events, open: true,
		})
	case e.GetTaskCompleted() != nil:
		if t := b.task(e.GetTaskCompleted().GetTask()); t != nil {
			t.done, t.open, t.stale = append(t.done, b.events), false, false
			t.paths, t.by = e.GetTaskCompleted().GetDelivery().GetPaths(), e.GetTaskCompleted().GetBy()
		}
	case e.GetTaskFailed() != nil:
		b.over(e.GetTaskFailed().GetTask())
	case e.GetTaskCancelled() != nil:
		b.over(e.GetTaskCancelled().GetTask())
	case e.GetTaskReopened() != nil:
		if t := b.task(e.GetTaskReopened().GetTask()); t != nil {
			t.open = true
			t.reopened = append(t.reopened, reopening{b.events, e.GetTaskReopened().GetBy()})
		}
	case e.GetTaskMarkedStale() != nil:
		if t := b.task(e.GetTaskMarkedStale().GetTask()); t != nil {
			t.stale = true
		}
	case e.GetTaskUpdated() != nil:
		u := e.GetTaskUpdated()
		if t := b.task(u.GetTask()); t != nil && u.GetDependenciesChanged() {
			t.needs = u.GetDependencies()
		}
	}
}

func (b *book) over(id string) {
	if t := b.task(id); t != nil {
		t.ended, t.open = append(t.ended, b.events), false
	}
}

func (b *book) running(e *rollcallv1.Event) {
	acts := func(what, member string) {
		b.activity = append(b.activity, activity{at: b.events, version: b.version, what: what, member: member})
	}
	switch {
	case e.GetRunStarted() != nil:
		r := e.GetRunStarted()
		b.runs = append(b.runs, &run{id: r.GetRun(), member: r.GetMember(), from: b.events})
		acts("began a run", r.GetMember())
		if h := r.GetAgentHash(); h != "" && !slices.Contains(b.agents, h) {
			b.agents = append(b.agents, h)
		}
	case e.GetRunResumed() != nil:
		acts("took up a run", e.GetRunResumed().GetMember())
	case e.GetModelCallStarted() != nil:
		acts("called the model", e.GetModelCallStarted().GetMember())
	case e.GetRunFinished() != nil:
		f := e.GetRunFinished()
		if r := b.run(f.GetRun()); r != nil {
			r.to, r.reason, r.code, r.undelivered = b.events, f.GetReason(), f.GetCode(), f.GetUndelivered()
		}
	case e.GetModelReplied() != nil:
		r := e.GetModelReplied()
		if name := r.GetModel(); name != "" && !slices.Contains(b.models, name) {
			b.models = append(b.models, name)
		}
		for _, asked := range r.GetCalls() {
			c := &call{member: r.GetMember(), run: r.GetRun(), name: asked.GetName(), args: plainJSON(asked.GetArguments()), at: b.events}
			b.calls = append(b.calls, c)
			b.open[r.GetRun()+" "+asked.GetId()] = c
		}
	case e.GetToolCallFinished() != nil:
		f := e.GetToolCallFinished()
		if c := b.open[f.GetRun()+" "+f.GetCall()]; c != nil {
			c.failed, c.output = f.GetError(), f.GetOutput().GetText()
			if m := codeIn.FindStringSubmatch(c.output); c.failed && m != nil {
				c.code = m[1]
			}
		}
	}
}

// codeIn is how a refusal names its code.
var codeIn = regexp.MustCompile(`\[([a-z]+(?:-[a-z]+)*)\]`)

// plainJSON writes equal arguments equally.
func plainJSON(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(out)
}

func (b *book) task(id string) *task {
	i := slices.IndexFunc(b.tasks, func(t *task) bool { return t.id == id })
	if i < 0 {
		return nil
	}
	return b.tasks[i]
}

func (b *book) run(id string) *run {
	i := slices.IndexFunc(b.runs, func(r *run) bool { return r.id == id })
	if i < 0 {
		return nil
	}
	return b.runs[i]
}

// name is what a person reads for a member's id.
func (b *book) name(id string) string {
	for _, m := range b.members {
		if m.id == id {
			return m.name
		}
	}
	return id
}

// others are all members but the Lead.
func (b *book) others() (all []*member) {
	for _, m := range b.members {
		if !m.lead {
			all = append(all, m)
		}
	}
	return all
}

// of are the runs of a member, in order.
func (b *book) of(member string) (all []*run) {
	for _, r := range b.runs {
		if r.member == member {
			all = append(all, r)
		}
	}
	return all
}

// path that a file tool was called with.
func (c *call) path() string {
	var args struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal([]byte(c.args), &args) // arguments that are no JSON have none
	return args.Path
}

// asks is the question that stands open, if somebody asked: by a wait for the
// operator, or in the Lead's last words.
func (b *book) asks(s Step) (asked bool, to, message string) {
	for _, w := range b.waits {
		if w.to == 0 && w.awaited == domain.User {
			return true, w.member, w.message
		}
	}
	for _, w := range b.waits {
		if w.to == 0 { // it waits for the Lead, who has ended its turn
			return true, "", ""
		}
	}
	if len(b.replies) == 0 {
		return false, "", ""
	}
	text := b.replies[len(b.replies)-1].GetText()
	question := slices.Contains([]byte(text), '?') || asking.MatchString(text)
	return question && (s.About == nil || s.About.MatchString(text)), "", ""
}

var asking = regexp.MustCompile(`(?i)\b(?:need|tell me|let me know|please|waiting for|provide|which)\b`)
