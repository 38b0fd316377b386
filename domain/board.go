package domain

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// board gathers what one change of the board means for others: the tasks that
// follow from it, and one notification for each who must know.
type board struct {
	d     *Decision
	news  map[string]*news
	order []string
	ready []*Task
}

type news struct {
	topic, task string
	lines       []string
}

func (d *Decision) onBoard() *board { return &board{d: d, news: map[string]*news{}} }

// tell notes a task's change for its owner and its creator (the Lead where no
// member made it), but not for who caused it. If nobody remains it is for the
// Lead, unless the Lead caused it.
func (b *board) tell(t *Task, topic, detail string) {
	line := fmt.Sprintf("Task %s %q is %s", t.ID, t.Title, Word(t.Status))
	if detail != "" {
		line += ": " + cut(detail, 1000)
	}
	b.note(b.d.concerned(t), topic, t.ID, line)
}

func (b *board) note(to []string, topic, task, line string) {
	for _, id := range to {
		n := b.news[id]
		if n == nil {
			n = &news{topic: topic, task: task}
			b.news[id] = n
			b.order = append(b.order, id)
		}
		n.lines = append(n.lines, line)
	}
}

func (d *Decision) concerned(t *Task) []string {
	s := d.State()
	var who []string
	add := func(m *Member) {
		if m != nil && m.Alive() && m.ID != d.actor && !slices.Contains(who, m.ID) {
			who = append(who, m.ID)
		}
	}
	add(s.Recipient(t.Owner))
	if creator := s.Member(t.Creator); creator != nil && creator.Alive() {
		add(creator)
	} else {
		add(s.Lead())
	}
	if len(who) == 0 {
		add(s.Lead())
	}
	return who
}

// settle brings every task that follows from its dependencies to the status it
// must have, then tells everybody.
func (b *board) settle() {
	for _, t := range b.d.State().dependenciesFirst() {
		if t.waiting() {
			b.recompute(t)
		}
	}
	const most = 30
	for _, id := range b.order {
		n := b.news[id]
		if over := len(n.lines) - most; over > 0 {
			n.lines = append(n.lines[:most], fmt.Sprintf("… and %d changes more that do not fit here.", over))
		}
		b.d.notify(id, n.topic, n.task, cut(strings.Join(n.lines, "\n"), maxNews))
	}
	for _, t := range b.ready {
		b.d.ready(t, len(b.ready))
	}
}

// recompute gives the task the status that its dependencies demand.
func (b *board) recompute(t *Task) {
	status, reason := b.d.State().demanded(t.Dependencies)
	if status == t.Status && reason == t.Reason {
		return
	}
	if status == blocked {
		b.d.emit(&rollcallv1.TaskBlocked{Task: t.ID, Reason: reason})
		b.tell(t, "task.blocked", reason)
		return
	}
	b.d.emit(&rollcallv1.TaskPromoted{Task: t.ID, Status: status})
	switch {
	case status != claimable:
		b.tell(t, "task.pending", "it waits for "+quoteAll(b.d.State().unfinished(t)))
	case b.d.State().Recipient(t.Owner) != nil:
		b.ready = append(b.ready, t)
	default:
		b.tell(t, "task.claimable", "")
	}
}

// demanded is the status that follows from dependencies, and what blocks.
func (s *State) demanded(dependencies []string) (rollcallv1.TaskStatus, string) {
	var reasons []string
	status := claimable
	for _, id := range dependencies {
		dep := s.Task(id)
		switch {
		case dep == nil:
			reasons = append(reasons, id+" is missing")
		case dep.Status == failed:
			reasons = append(reasons, id+" failed")
		case dep.Status == cancelled:
			reasons = append(reasons, id+" was cancelled")
		case dep.Status == blocked:
			reasons = append(reasons, id+" is blocked")
		case dep.Status != completed:
			status = pending
		}
	}
	if len(reasons) > 0 {
		return blocked, strings.Join(reasons, ", ")
	}
	return status, ""
}

// notify sends routine progress, which wakes nobody.
func (d *Decision) notify(to, topic, task, text string) {
	d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION, from: Framework, to: to, body: textBody(text), topic: topic, task: task})
}

// Bounds of framework mail, in bytes: of one notification, and of all
// task_ready messages of one command.
const (
	maxNews  = 8 << 10
	maxReady = 128 << 10
)

// ready wakes a task's owner with the results of what the task builds on. It
// is one of several such messages, which share the room of a commit.
func (d *Decision) ready(t *Task, of int) {
	room := min(max(maxReady/of, 200), 24<<10)
	if owner := d.State().Recipient(t.Owner); owner != nil {
		d.deliver(letter{
			kind: rollcallv1.MailKind_MAIL_KIND_TASK_READY, from: Framework, to: owner.ID, body: textBody(readyText(d.State(), t, room)),
			topic: "task.ready", task: t.ID,
		})
	}
}
