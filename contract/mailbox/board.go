package mailbox

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rollcall-dev/rollcall/domain"
)

type taskCreateArgs struct {
	Title        string   `json:"title" jsonschema:"one line"`
	Description  string   `json:"description" jsonschema:"what to do, with what, to be used by whom"`
	Owner        string   `json:"owner,omitempty" jsonschema:"a member's name, Lead, or user when the operator must act"`
	Dependencies []string `json:"dependencies,omitempty" jsonschema:"ids of tasks that must be completed first, such as t1"`
}

func taskCreate(d *domain.Decision, a taskCreateArgs) (any, *domain.Refusal) {
	t, refusal := d.CreateTask(domain.NewTask{Title: a.Title, Description: a.Description, Owner: a.Owner, Dependencies: a.Dependencies})
	if refusal != nil {
		return nil, refusal
	}
	return brief(t), nil
}

type taskUpdateArgs struct {
	TaskID        string    `json:"task_id" jsonschema:"such as t1"`
	Owner         *string   `json:"owner,omitempty" jsonschema:"new owner: a member's name, Lead or user"`
	Status        string    `json:"status,omitempty" jsonschema:"in_progress claims it, claimable gives it back or opens it again, failed needs a failure_reason"`
	FailureReason string    `json:"failure_reason,omitempty" jsonschema:"why it cannot be done, was cancelled or is opened again"`
	Title         *string   `json:"title,omitempty"`
	Description   *string   `json:"description,omitempty"`
	Dependencies  *[]string `json:"dependencies,omitempty" jsonschema:"all dependencies, replacing the present ones"`
}

// taskStatuses are what a task can be asked to become.
func taskStatuses(properties map[string]*jsonschema.Schema) {
	properties["status"].Enum = []any{"in_progress", "claimable", "failed", "cancelled"}
}

func taskUpdate(d *domain.Decision, a taskUpdateArgs) (any, *domain.Refusal) {
	change := domain.TaskChange{
		Task: a.TaskID, Title: a.Title, Description: a.Description, Owner: a.Owner, Status: a.Status, Reason: a.FailureReason,
	}
	if a.Dependencies != nil {
		change.Redepend, change.Dependencies = true, *a.Dependencies
	}
	t, refusal := d.UpdateTask(change)
	if refusal != nil {
		return nil, refusal
	}
	return brief(t), nil
}

type taskCompleteArgs struct {
	TaskID string   `json:"task_id" jsonschema:"such as t1"`
	Result string   `json:"result" jsonschema:"a summary that others can use without your context"`
	Paths  []string `json:"paths,omitempty" jsonschema:"files of your workspace that you deliver"`
}

func taskComplete(d *domain.Decision, a taskCompleteArgs) (any, *domain.Refusal) {
	t, refusal := d.CompleteTask(a.TaskID, a.Result, a.Paths)
	if refusal != nil {
		return nil, refusal
	}
	return brief(t), nil
}

// taskOut is a task as a tool shows it.
type taskOut struct {
	ID           string   `json:"task_id"`
	Title        string   `json:"title"`
	Status       string   `json:"status"`
	Owner        string   `json:"owner,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Stale        string   `json:"stale,omitempty"`
}

func brief(t *domain.Task) taskOut {
	return taskOut{
		ID: t.ID, Title: t.Title, Status: domain.Word(t.Status), Owner: t.Owner, Dependencies: t.Dependencies,
		Reason: t.Reason, Stale: t.StaleReason,
	}
}

// maxList keeps a list within what one tool output may hold, in bytes.
const maxList = 24 << 10

type listOut struct {
	Tasks []taskOut `json:"tasks"`
	// Omitted counts tasks that did not fit.
	Omitted int `json:"omitted,omitempty"`
}

// taskList shows the newest tasks; when not all fit, unfinished ones come first.
func taskList(d *domain.Decision, _ noArgs) (any, *domain.Refusal) {
	tasks := d.State().Tasks
	shown := make(map[string]bool, len(tasks))
	room := maxList
	for _, open := range []bool{true, false} {
		for i := len(tasks) - 1; i >= 0; i-- {
			t := tasks[i]
			if t.Open() != open {
				continue
			}
			line, err := json.Marshal(brief(t))
			if room -= len(line) + 1; err != nil || room < 0 {
				break
			}
			shown[t.ID] = true
		}
	}
	out := listOut{Tasks: []taskOut{}}
	for _, t := range tasks {
		if shown[t.ID] {
			out.Tasks = append(out.Tasks, brief(t))
		} else {
			out.Omitted++
		}
	}
	return out, nil
}

type taskGetArgs struct {
	TaskID string `json:"task_id" jsonschema:"such as t1"`
}

type taskFull struct {
	taskOut
	Description string   `json:"description,omitempty"`
	Creator     string   `json:"creator"`
	Result      string   `json:"result,omitempty"`
	Paths       []string `json:"paths,omitempty"`
	CompletedBy string   `json:"completed_by,omitempty"`
	Failure     string   `json:"failure,omitempty"`
	Revision    uint32   `json:"revision,omitempty"`
}

func taskGet(d *domain.Decision, a taskGetArgs) (any, *domain.Refusal) {
	t, refusal := d.FindTask(a.TaskID)
	if refusal != nil {
		return nil, refusal
	}
	s := d.State()
	return taskFull{
		taskOut: brief(t), Description: t.Description, Creator: s.DisplayName(t.Creator), Result: t.Result,
		Paths: s.DeliveredPaths(t), CompletedBy: s.DisplayName(t.CompletedBy), Failure: t.Failure, Revision: t.Revision,
	}, nil
}
