package domain

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Assignment is a member that is to be made together with its one task.
type Assignment struct {
	Name, AgentType, Brief string
	// DependsOn names members whose deliveries it needs first.
	DependsOn []string
}

// DeclareTeam makes the active team with its members and their assignments.
// Names and circles are checked over all of them before the first is made.
func (d *Decision) DeclareTeam(goal string, members []Assignment) (*Team, *Refusal) {
	const what = "the team is not created"
	switch {
	case strings.TrimSpace(goal) == "":
		return nil, Refuse("text-empty", what, "its goal is empty", "say what the team shall achieve")
	case len(members) == 0:
		return nil, Refuse("team-empty", what, "it has no members", "name at least one, or do the work yourself")
	}
	members, refusal := d.checkAssignments(members)
	if refusal != nil {
		return nil, refusal
	}
	team, refusal := d.CreateTeam(cut(firstLine(goal), MaxTitle/2), goal)
	if refusal != nil {
		return nil, refusal
	}
	d.assign(members)
	return team, nil
}

// AddAssignment adds a member with its task to the active team.
func (d *Decision) AddAssignment(a Assignment) (*Member, *Refusal) {
	if d.State().ActiveTeam() == nil {
		return nil, noTeam("the member is not added")
	}
	checked, refusal := d.checkAssignments([]Assignment{a})
	if refusal != nil {
		return nil, refusal
	}
	d.assign(checked)
	s := d.State()
	return s.Members[len(s.Members)-1], nil
}

func noTeam(what string) *Refusal {
	return Refuse("team-not-found", what, "there is no active team", "create one first with team_create")
}

// checkAssignments checks new members against each other and against those
// there are. They come back with normalised names.
func (d *Decision) checkAssignments(members []Assignment) ([]Assignment, *Refusal) {
	s := d.State()
	if len(s.aliveNames())+len(members) > d.b.limits.Members {
		return nil, tooMany("members", d.b.limits.Members, len(s.aliveNames()))
	}
	if len(s.Tasks)+len(members) > d.b.limits.Tasks {
		return nil, tooMany("tasks", d.b.limits.Tasks, len(s.Tasks))
	}
	checked := make([]Assignment, 0, len(members))
	for _, a := range members {
		a, refusal := d.checkAssignment(a)
		if refusal != nil {
			return nil, refusal
		}
		if slices.ContainsFunc(checked, func(other Assignment) bool { return other.Name == a.Name }) {
			return nil, Refuse("name-taken", fmt.Sprintf("the name %q is refused", a.Name), "two members have it", "give each member a name of its own")
		}
		checked = append(checked, a)
	}
	return checked, d.checkEdges(checked)
}

func (d *Decision) checkAssignment(a Assignment) (Assignment, *Refusal) {
	s := d.State()
	name, refusal := s.memberName(a.Name)
	if refusal != nil {
		return a, refusal
	}
	a.Name, a.AgentType = name, agentType(a.AgentType)
	if s.Agents[a.AgentType] == nil {
		return a, unknownAgent(a.AgentType, s.agentTypes())
	}
	if refusal := CheckBrief(name, a.Brief); refusal != nil {
		return a, refusal
	}
	needs := make([]string, 0, len(a.DependsOn))
	for _, n := range a.DependsOn {
		if n = Name(n); !slices.Contains(needs, n) {
			needs = append(needs, n)
		}
	}
	a.DependsOn = needs
	return a, nil
}

// CheckBrief refuses an assignment that is empty or too long.
func CheckBrief(name, brief string) *Refusal {
	if strings.TrimSpace(brief) == "" {
		return Refuse("text-empty", name+" gets no assignment", "its brief is empty", "say what it must do, with what, and for whom: it knows nothing else")
	}
	return checkText("the brief of "+name, brief, MaxInline)
}

// checkEdges checks that what the new members depend on is there and that they
// do not wait for each other. Members there are cannot depend on new ones.
func (d *Decision) checkEdges(members []Assignment) *Refusal {
	needs := map[string][]string{}
	for _, a := range members {
		needs[a.Name] = a.DependsOn
	}
	for _, a := range members {
		for _, n := range a.DependsOn {
			if _, isNew := needs[n]; isNew {
				continue
			}
			if _, refusal := d.State().prerequisite(a.Name, n, needs); refusal != nil {
				return refusal
			}
		}
	}
	for _, a := range members {
		if ring := ringFrom(a.Name, a.Name, needs, map[string]bool{}); ring != nil {
			return Refuse("task-cycle", a.Name+" cannot depend on that", "members would wait for each other: "+strings.Join(ring, " -> "), "leave one of these dependencies out")
		}
	}
	return nil
}

// ringFrom is a way from a member along what it depends on to the other, as
// names; nil when there is none.
func ringFrom(from, to string, needs map[string][]string, seen map[string]bool) []string {
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, n := range needs[from] {
		if n == to {
			return []string{from, to}
		}
		if rest := ringFrom(n, to, needs, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}

// prerequisite is the task of a member that another one can depend on.
func (s *State) prerequisite(name, needs string, others map[string][]string) (*Task, *Refusal) {
	what := fmt.Sprintf("%s cannot depend on %q", name, cut(needs, 4*maxName))
	t := s.assignment(s.Named(needs))
	switch {
	case t == nil:
		valid := s.assignees()
		for other := range others {
			if other != name {
				valid = append(valid, other)
			}
		}
		slices.Sort(valid)
		return nil, Refuse("dependency-not-found", what, "the team has no such member", "choose from: "+quoteAll(valid))
	case t.Status == cancelled:
		return nil, Refuse("dependency-cancelled", what, "that member was cancelled: it will never deliver", "depend on its replacement, or on nobody")
	}
	return t, nil
}

// assignees are the names that can be depended on.
func (s *State) assignees() []string {
	var names []string
	for _, m := range s.Members {
		if t := s.assignment(m); t != nil && t.Status != cancelled {
			names = append(names, m.Name)
		}
	}
	return names
}

// assignment is the member's own task; nil when it has none, or its team is gone.
func (s *State) assignment(m *Member) *Task {
	if m == nil || m.Task == "" {
		return nil
	}
	if t := s.ActiveTeam(); t == nil || t.ID != m.Team {
		return nil
	}
	return s.Task(m.Task)
}

// assign makes checked members with their tasks. Each has its brief at once and
// begins when what it depends on is delivered.
func (d *Decision) assign(members []Assignment) {
	s := d.State()
	ids := map[string]string{}
	for i, a := range members {
		ids[a.Name] = nth("t", uint64(len(s.Tasks)+1+i))
	}
	firstMember := len(s.Members)
	for _, a := range members {
		d.emit(d.taskFor(a, ids))
	}
	for i, a := range members {
		member := nth("m", uint64(firstMember+i))
		d.emit(&rollcallv1.MemberAdded{
			Member: member, Name: a.Name, Role: rollcallv1.MemberRole_MEMBER_ROLE_MEMBER, AgentType: a.AgentType, Team: s.ActiveTeam().ID, Task: ids[a.Name],
		})
		d.brief(member, a.Brief)
	}
	d.onBoard().settle() // what depends on a failure is blocked from the start
	for _, a := range members {
		t := s.Task(ids[a.Name])
		if t.Status == claimable && len(t.Dependencies) > 0 { // what it needs was delivered before
			d.ready(t, len(members))
		}
	}
}

func (d *Decision) brief(member, text string) {
	d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_BRIEF, from: Framework, to: member, body: textBody(text), task: d.State().Member(member).Task})
}

// taskFor is the task of an assignment. Dependencies may be made after it.
func (d *Decision) taskFor(a Assignment, ids map[string]string) *rollcallv1.TaskCreated {
	s := d.State()
	t := &rollcallv1.TaskCreated{
		Task: ids[a.Name], Title: cut(firstLine(a.Brief), MaxTitle/2), Owner: a.Name, Creator: d.actor, Team: s.ActiveTeam().ID, Status: claimable,
	}
	for _, n := range a.DependsOn {
		id, isNew := ids[n]
		if !isNew {
			id = s.Named(n).Task
		}
		t.Dependencies = append(t.Dependencies, id)
		if isNew || s.Task(id).Status != completed {
			t.Status = pending
		}
	}
	return t
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if words := strings.Join(strings.Fields(line), " "); words != "" {
			return words
		}
	}
	return ""
}

// Complete delivers the caller's own task, which ends its run.
func (d *Decision) Complete(summary string, paths []string) (*Task, *Refusal) {
	me := d.Caller()
	const what = "nothing is delivered"
	switch {
	case me.Task == "":
		return nil, Refuse("no-assignment", what, "you have no assignment", "end your turn with your answer")
	case strings.TrimSpace(summary) == "":
		return nil, Refuse("text-empty", what, "the summary is empty", "say what you found or made, so that others can use it without your context")
	case me.Run != nil && len(me.Run.Asked) > 0:
		return nil, Refuse("wait-open", what, "you wait for the answer to "+me.Run.Asked[0].Message, "complete when you have it")
	}
	return d.CompleteTask(me.Task, summary, paths)
}

// takeUp begins, or takes up again, the assignment of a member whose run starts.
func (d *Decision) takeUp(m *Member) {
	t := d.State().assignment(m)
	if t == nil || t.Owner != m.Name || t.Status != claimable && t.Status != failed {
		return
	}
	again := t.Status == failed
	if again {
		d.emit(&rollcallv1.TaskReopened{Task: t.ID, Reason: "tried again", By: m.ID, Revision: t.Revision})
	}
	d.emit(&rollcallv1.TaskClaimed{Task: t.ID, Owner: m.Name, By: m.ID})
	if again {
		d.onBoard().settle()
	}
}

// dropAssignment fails the task of a member whose run failed: what depends on
// it is blocked until the Lead decides, or the member is tried again.
func (d *Decision) dropAssignment(m *Member) {
	t := d.State().assignment(m)
	if t == nil || t.Status != inProgress || t.Owner != m.Name {
		return
	}
	reason := failure(m)
	d.emit(&rollcallv1.TaskFailed{Task: t.ID, Reason: cut(reason, 2000), By: Framework})
	board := d.onBoard()
	board.tell(t, "task.failed", reason)
	board.settle()
}
