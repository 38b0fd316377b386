package projections

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// world plays conversations by deciding commands: what a model, a tool and an
// operator might do, in any order, by chance. Every commit that comes of it is
// one that a node could have written.
type world struct {
	log   eventstore.Log
	rules *domain.Rules
	now   time.Time
	all   []*played
	ids   int
	// told counts the kinds of events that were written.
	told map[string]int
}

// played is one conversation, with its state as the decider knows it.
type played struct {
	state *domain.State
	at    eventstore.Position
}

func newWorld(log eventstore.Log) *world {
	return &world{
		log: log, now: begun, told: map[string]int{},
		rules: &domain.Rules{
			Contracts: contract.All(), DefaultModel: "m-1", Prices: map[string]domain.Price{"m-1": {Input: 3, Cached: 1, Output: 7}},
			Tools: []*rollcallv1.ToolDefinition{
				{Name: "file_write", Description: "writes", Schema: `{"type":"object"}`, Idempotent: true},
				{Name: "file_delete", Description: "deletes", Schema: `{"type":"object"}`},
			},
		},
	}
}

// decide decides commands into one commit and stores it. Refusals are normal.
func (w *world) decide(t fataler, p *played, commands ...*rollcallv1.Command) {
	w.now = w.now.Add(time.Duration(w.ids%7) * 13 * time.Millisecond)
	b, err := p.state.Begin(w.rules, domain.Stamp{Time: w.now, Node: "n1", Epoch: 1, CommitID: fmt.Sprintf("c%d", w.ids)})
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	for _, c := range commands {
		w.ids++
		c.Id = fmt.Sprintf("cmd%d", w.ids)
		_, _ = b.Decide(c) // a refusal changes nothing
	}
	c := b.Commit()
	if c == nil {
		return
	}
	r, err := w.log.Append(tContext, p.state.Key, p.at, c)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	p.state.Committed(c)
	for _, e := range c.GetEvents() {
		w.told[domain.EventName(e)]++
	}
	p.at = r.Position()
}

type fataler interface {
	Fatalf(format string, args ...any)
}

func (w *world) open(t fataler, name string) *played {
	id := fmt.Sprintf("01story%04d", len(w.all))
	p := &played{state: domain.New(domain.Key{Tenant: "main", Conversation: id})}
	w.all = append(w.all, p)
	w.decide(t, p, &rollcallv1.Command{Actor: domain.Operator, Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Conversation: id, Tenant: "main", Name: name, Contract: "mailbox",
		Objective: &rollcallv1.Body{Text: "begin"},
		Files:     []*rollcallv1.FileChange{{Path: "brief.md", Blob: blob("brief")}},
	}}})
	return p
}

// play takes some steps of chance.
func (w *world) play(t *rapid.T, steps int) {
	for range steps {
		if len(w.all) == 0 || len(w.all) < 3 && rapid.IntRange(0, 19).Draw(t, "open") == 0 {
			w.open(t, rapid.SampledFrom([]string{"harbor", "Café", "harbor", ""}).Draw(t, "name"))
			continue
		}
		p := rapid.SampledFrom(w.all).Draw(t, "conversation")
		commands := []*rollcallv1.Command{w.command(t, p)}
		if rapid.Bool().Draw(t, "more in the commit") {
			commands = append(commands, w.command(t, p))
		}
		w.decide(t, p, commands...)
	}
}

// command is mostly the outcome of what is due, now and then something from
// outside.
func (w *world) command(t *rapid.T, p *played) *rollcallv1.Command {
	due := domain.Due(p.state)
	if len(due) > 0 && rapid.IntRange(0, 3).Draw(t, "outside") > 0 {
		return outcome(t, p.state, rapid.SampledFrom(due).Draw(t, "due"))
	}
	return outside(t, p.state)
}

func outcome(t *rapid.T, s *domain.State, d domain.Work) *rollcallv1.Command {
	c := &rollcallv1.Command{Actor: domain.Framework}
	switch roll := rapid.IntRange(0, 19).Draw(t, "outcome"); {
	case roll == 0:
		c.Kind = &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: d.Member, Run: d.Run}}
	case roll == 1:
		c.Kind = &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{Member: d.Member, Run: d.Run, Reason: "draining"}}
	case roll == 2:
		c.Kind = &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{Member: d.Member, Run: d.Run, Code: "step-crashed", Error: "boom"}}
	case d.Kind == domain.CallTool:
		files := []*rollcallv1.FileChange{{Path: rapid.SampledFrom([]string{"a.md", "b/c.md"}).Draw(t, "path")}}
		if rapid.Bool().Draw(t, "written") {
			files[0].Blob = blob(rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "content"))
		}
		c.Kind = &rollcallv1.Command_RecordToolOutcome{RecordToolOutcome: &rollcallv1.RecordToolOutcome{
			Member: d.Member, Run: d.Run, Step: s.Member(d.Member).Run.Step, Call: d.Call,
			Output: &rollcallv1.Body{Text: "done"}, Error: roll == 3, Files: files,
		}}
	case roll <= 5:
		c.Kind = &rollcallv1.Command_RecordModelFailure{RecordModelFailure: &rollcallv1.RecordModelFailure{
			Member: d.Member, Run: d.Run, Step: d.Step, Attempt: d.Attempt, Code: "model-timeout", Error: "slow", Transient: roll < 5,
		}}
	default:
		c.Kind = &rollcallv1.Command_RecordReply{RecordReply: answered(t, s, d)}
	}
	return c
}

func answered(t *rapid.T, s *domain.State, d domain.Work) *rollcallv1.RecordReply {
	r := &rollcallv1.RecordReply{
		Member: d.Member, Run: d.Run, Step: d.Step, Attempt: d.Attempt, Finish: "stop", Model: rapid.SampledFrom([]string{"m-1", "m-2"}).Draw(t, "model"),
		Usage: &rollcallv1.Usage{
			InputTokens: rapid.Uint64Max(5000).Draw(t, "input"), OutputTokens: rapid.Uint64Max(500).Draw(t, "output"),
			CachedTokens: rapid.Uint64Max(100).Draw(t, "cached"), CostMicros: rapid.Uint64Max(90000).Draw(t, "cost"), Estimated: rapid.Bool().Draw(t, "estimated"),
		},
	}
	for i := range rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, "calls") {
		name, args := call(t, s)
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatalf("arguments: %v", err)
		}
		r.Calls = append(r.Calls, &rollcallv1.ToolCall{Id: fmt.Sprintf("%s-%d-%d", d.Run, d.Step, i), Name: name, Arguments: string(data)})
	}
	if len(r.Calls) > 0 {
		r.Finish = "tool_calls"
	} else {
		r.Text = &rollcallv1.Body{Text: "I am done."}
	}
	return r
}

// call is a tool call that a member might make; many are refused.
func call(t *rapid.T, s *domain.State) (string, map[string]any) {
	name := func() string {
		names := []string{"Ana", "Ben", "user", "Zoe"}
		for _, m := range s.Members {
			names = append(names, m.Name, m.Name)
		}
		return rapid.SampledFrom(names).Draw(t, "name")
	}
	task := func() string { return fmt.Sprintf("t%d", rapid.IntRange(1, max(1, len(s.Tasks))).Draw(t, "task")) }
	tools := []string{"member", "send", "send", "create", "create", "update", "update", "complete", "complete", "file", "file", "remove", "dissolve"}
	if s.ActiveTeam() == nil {
		tools = append(tools, "team", "team", "team", "team")
	} else {
		tools = append(tools, "member", "member", "member")
	}
	switch rapid.SampledFrom(tools).Draw(t, "tool") {
	case "team":
		return "team_create", map[string]any{"name": "crew"}
	case "member":
		return "team_member_add", map[string]any{"name": name(), "initial_prompt": "do it"}
	case "send":
		args := map[string]any{"to": name(), "text": "words", "wait_for_reply": rapid.Bool().Draw(t, "wait")}
		if rapid.Bool().Draw(t, "answer") {
			args["reply_to"] = fmt.Sprintf("msg%d", rapid.IntRange(1, 12).Draw(t, "message"))
		}
		return "send_message", args
	case "create":
		args := map[string]any{"title": "a task", "description": "to do"}
		if rapid.Bool().Draw(t, "owned") {
			args["owner"] = name()
		}
		if rapid.Bool().Draw(t, "depends") {
			args["dependencies"] = []string{task()}
		}
		return "task_create", args
	case "update":
		return "task_update", map[string]any{
			"task_id": task(), "owner": name(), "failure_reason": "no",
			"status": rapid.SampledFrom([]string{"in_progress", "in_progress", "failed", "cancelled", "claimable"}).Draw(t, "status"),
		}
	case "complete":
		return "task_complete", map[string]any{"task_id": task(), "result": "done", "paths": []string{}}
	case "file":
		return rapid.SampledFrom([]string{"file_write", "file_delete", "no_such_tool"}).Draw(t, "external"), map[string]any{"path": "a.md"}
	case "remove":
		return "team_member_remove", map[string]any{"name": name()}
	}
	return "team_dissolve", map[string]any{}
}

// outside is what the operator might do.
func outside(t *rapid.T, s *domain.State) *rollcallv1.Command {
	member := domain.LeadID
	if len(s.Members) > 0 {
		member = rapid.SampledFrom(s.Members).Draw(t, "member").ID
	}
	task := fmt.Sprintf("t%d", rapid.IntRange(1, max(1, len(s.Tasks))).Draw(t, "task"))
	c := &rollcallv1.Command{Actor: domain.Operator}
	kind := rapid.IntRange(0, 14).Draw(t, "operator")
	if s.Paused && rapid.Bool().Draw(t, "go on") {
		kind = 2
	}
	switch kind {
	case 0:
		c.Kind = &rollcallv1.Command_InterruptMember{InterruptMember: &rollcallv1.InterruptMember{Member: member}}
	case 1:
		c.Kind = &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}
	case 2:
		c.Kind = &rollcallv1.Command_ResumeConversation{ResumeConversation: &rollcallv1.ResumeConversation{}}
	case 4:
		c.Kind = &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}
	case 5:
		c.Kind = &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{
			Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: "for me", Owner: rapid.SampledFrom([]string{"user", "Ana", ""}).Draw(t, "owner"),
		}}
	case 6:
		op := rapid.SampledFrom([]rollcallv1.ChangeTask_Operation{
			rollcallv1.ChangeTask_OPERATION_ASSIGN, rollcallv1.ChangeTask_OPERATION_DONE, rollcallv1.ChangeTask_OPERATION_FAIL, rollcallv1.ChangeTask_OPERATION_CANCEL,
		}).Draw(t, "operation")
		c.Kind = &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{Operation: op, Task: task, Owner: "user", Text: "by hand"}}
	case 7:
		change := &rollcallv1.FileChange{Path: rapid.SampledFrom([]string{"brief.md", "a.md"}).Draw(t, "path")}
		if rapid.Bool().Draw(t, "written") {
			change.Blob = blob("input")
		}
		c.Kind = &rollcallv1.Command_WriteFiles{WriteFiles: &rollcallv1.WriteFiles{Member: member, Files: []*rollcallv1.FileChange{change}}}
	case 8:
		c.Kind = &rollcallv1.Command_RaiseBudget{RaiseBudget: &rollcallv1.RaiseBudget{Budget: &rollcallv1.Budget{Tokens: 1 << 40}}}
	default:
		mode := rollcallv1.MailMode(rapid.Int32Range(0, 3).Draw(t, "mode"))
		c.Kind = &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{
			To: member, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Mode: mode, Body: &rollcallv1.Body{Text: "go on"},
		}}
	}
	return c
}

func blob(content string) *rollcallv1.Blob {
	return &rollcallv1.Blob{Sha256: strings.Repeat(fmt.Sprintf("%02x", len(content)*7), 32), Size: uint64(len(content))}
}

// items is the whole log as the fold gets it.
func (w *world) items(t testing.TB) []item {
	t.Helper()
	return read(t, w.log)
}
