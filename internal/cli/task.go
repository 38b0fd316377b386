package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// taskVerb is one thing that can be done to the board.
type taskVerb struct {
	name        string
	least, most int
	usage, done string
	operation   rollcallv1.ChangeTask_Operation
}

var taskVerbs = []taskVerb{
	{name: "ls", usage: "ls"},
	{name: "add", least: 1, most: 1, usage: `add "TITLE"`, done: "added", operation: rollcallv1.ChangeTask_OPERATION_ADD},
	{name: "assign", least: 2, most: 2, usage: "assign TASK OWNER", done: "assigned", operation: rollcallv1.ChangeTask_OPERATION_ASSIGN},
	{name: "done", least: 1, most: 2, usage: `done TASK ["RESULT"]`, done: "completed", operation: rollcallv1.ChangeTask_OPERATION_DONE},
	{name: "fail", least: 2, most: 2, usage: `fail TASK "REASON"`, done: "failed", operation: rollcallv1.ChangeTask_OPERATION_FAIL},
	{name: "cancel", least: 1, most: 2, usage: `cancel TASK ["REASON"]`, done: "cancelled", operation: rollcallv1.ChangeTask_OPERATION_CANCEL},
}

func (s *session) task() *cobra.Command {
	t := &rollcallv1.ChangeTask{}
	c := &cobra.Command{
		Use:   "task CONV ls|add|assign|done|fail|cancel [ARGS] [flags]",
		Short: "See and change the board",
		Long: `Task is the operator's hand on the board. A task of the owner "user" is yours: the team
waits until it is done.`,
		Example: `  rollcall task harbor ls
  rollcall task harbor add "check the numbers" --owner Backend --after t1,t2
  rollcall task harbor assign t3 Frontend
  rollcall task harbor done t4 "approved" --path notes.md
  rollcall task harbor cancel t5 "not needed"`,
		GroupID: groupAct, Args: args(2, 4), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().StringVar(&t.Owner, "owner", "", "add: who works on it; user is you")
	c.Flags().StringVar(&t.Description, "description", "", "add: what is to be done")
	c.Flags().StringSliceVar(&t.Dependencies, "after", nil, "add: ids of tasks to be completed first")
	c.Flags().StringArrayVar(&t.Paths, "path", nil, "done: path of a file of the result; may be repeated")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(taskVerbs, func(v taskVerb) bool { return v.name == args[1] })
		if i < 0 {
			return domain.Refuse("usage", fmt.Sprintf("a task cannot be told to %q", printable(args[1])), strings.TrimPrefix(didYouMean(args[1], "ls", "add", "assign", "done", "fail", "cancel"), "; "), "use ls, add, assign, done, fail or cancel")
		}
		v, rest := taskVerbs[i], args[2:]
		if len(rest) < v.least || len(rest) > v.most {
			return domain.Refuse("usage", "the task command is not complete", "got "+count(len(rest), "argument"), "rollcall task CONV "+v.usage)
		}
		client, err := s.connect()
		if err != nil {
			return err
		}
		if v.name == "ls" {
			return s.listTasks(ctx, client, r)
		}
		if err := r.whole(); err != nil {
			return err
		}
		if err := fillTask(t, v, rest); err != nil {
			return err
		}
		a, err := client.ChangeTask(ctx, r.conversation, t)
		if err != nil {
			return err
		}
		return s.answer(a, v.done)
	})
}

func fillTask(t *rollcallv1.ChangeTask, v taskVerb, rest []string) error {
	for _, text := range append(append([]string{t.Owner, t.Description}, rest...), t.Paths...) {
		if err := api.CheckText("the text", text, api.MaxText); err != nil {
			return err
		}
	}
	t.Operation = v.operation
	switch v.name {
	case "add":
		t.Title = rest[0]
		return nil
	case "assign":
		t.Owner = rest[1]
	default:
		t.Text = strings.Join(rest[1:], "")
	}
	t.Task = rest[0]
	return nil
}

func (s *session) listTasks(ctx context.Context, c *api.Client, r ref) error {
	d, err := c.Show(ctx, r.read())
	if err != nil {
		return err
	}
	return s.print(d.Tasks, func(w io.Writer) {
		rows := [][]string{{"ID", "STATUS", "OWNER", "AFTER", "TITLE"}}
		for _, t := range d.Tasks.List {
			rows = append(rows, []string{t.ID, t.Status, orDash(t.Owner), orDash(strings.Join(t.Dependencies, ",")), t.Title + because(t.Reason)})
		}
		table(w, rows)
	})
}
