package dag

import (
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
)

type memberArgs struct {
	Name      string   `json:"name" jsonschema:"a new name in any script; names are never used again in a conversation"`
	AgentType string   `json:"agent_type,omitempty" jsonschema:"kind of agent; general when left out"`
	Brief     string   `json:"brief" jsonschema:"the assignment: all that the member will know"`
	DependsOn []string `json:"depends_on,omitempty" jsonschema:"names of members whose deliveries it needs before it starts"`
}

type createArgs struct {
	Goal    string       `json:"goal" jsonschema:"what the team shall achieve"`
	Members []memberArgs `json:"members" jsonschema:"the work that is clear now; more can be added later"`
}

type created struct {
	Team    string      `json:"team"`
	Members []memberOut `json:"members"`
	Note    string      `json:"note"`
}

type memberOut struct {
	Member string `json:"member"`
	Name   string `json:"name"`
	Task   string `json:"task_id"`
	Status string `json:"status"`
}

func teamCreate(d *domain.Decision, a createArgs) (any, *domain.Refusal) {
	var members []domain.Assignment
	for _, m := range a.Members {
		members = append(members, domain.Assignment(m))
	}
	team, refusal := d.DeclareTeam(a.Goal, members)
	if refusal != nil {
		return nil, refusal
	}
	out := created{Team: team.ID, Note: "end your turn: those who need nobody start then, the others when what they need is delivered; a report wakes you"}
	s := d.State()
	for _, m := range s.Members {
		if t := s.Task(m.Task); t != nil && m.Team == team.ID {
			out.Members = append(out.Members, memberOut{Member: m.ID, Name: m.Name, Task: t.ID, Status: domain.Word(t.Status)})
		}
	}
	return out, nil
}

type noArgs struct{}

func teamDissolve(d *domain.Decision, _ noArgs) (any, *domain.Refusal) {
	if refusal := d.DissolveTeam(); refusal != nil {
		return nil, refusal
	}
	return struct {
		Note string `json:"note"`
	}{"the team is closed: its members are shut down and what was open is cancelled; their files can still be read"}, nil
}

type operationArgs struct {
	Op        string    `json:"op" jsonschema:"add a member; revise the assignment of one; cancel one with all unfinished work that depends on it"`
	Name      string    `json:"name" jsonschema:"the member: a new name to add"`
	AgentType string    `json:"agent_type,omitempty" jsonschema:"of an added member"`
	Brief     string    `json:"brief,omitempty" jsonschema:"the assignment, of an added or revised member"`
	DependsOn *[]string `json:"depends_on,omitempty" jsonschema:"members whose deliveries it needs; when revising, all of them, in place of the present ones"`
	Reason    string    `json:"reason,omitempty" jsonschema:"why it is revised or cancelled"`
}

func (a operationArgs) operation() domain.Operation {
	op := domain.Operation{Op: a.Op, Reason: a.Reason, Assignment: domain.Assignment{Name: a.Name, AgentType: a.AgentType, Brief: a.Brief}}
	if a.DependsOn != nil {
		op.Redepend, op.DependsOn = true, *a.DependsOn
	}
	return op
}

type replanArgs struct {
	Operations []operationArgs `json:"operations" jsonschema:"applied in this order"`
	Atomic     bool            `json:"atomic,omitempty" jsonschema:"all or nothing"`
}

type outcomeOut struct {
	Op   string `json:"op"`
	Name string `json:"name"`
	Done bool   `json:"done"`
	// Error says why it was not done.
	Error     string `json:"error,omitempty"`
	Stale     string `json:"stale,omitempty"`
	Cancelled string `json:"also_cancelled,omitempty"`
}

type replanned struct {
	Outcomes []outcomeOut `json:"outcomes"`
	Note     string       `json:"note,omitempty"`
	status
}

func teamReplan(d *domain.Decision, a replanArgs) (any, *domain.Refusal) {
	var operations []domain.Operation
	for _, op := range a.Operations {
		operations = append(operations, op.operation())
	}
	outcomes, done, refusal := d.Replan(operations, a.Atomic)
	if refusal != nil {
		return nil, refusal
	}
	out := replanned{status: statusOf(d)}
	if !done {
		out.Note = "atomic: nothing was done, because one operation was refused"
	}
	for _, o := range outcomes {
		shown := outcomeOut{Op: o.Op, Name: o.Name, Done: done && o.Refusal == nil}
		switch also := strings.Join(o.Also, ", "); {
		case o.Refusal != nil:
			shown.Error = o.Refusal.Error()
		case o.Op == domain.OpCancel:
			shown.Cancelled = also
		default:
			shown.Stale = also
		}
		out.Outcomes = append(out.Outcomes, shown)
	}
	return out, nil
}
