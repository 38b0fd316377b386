package audit_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/audit"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/prompt"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var key = domain.Key{Tenant: "main", Conversation: "01jzzzzzzzzzzzzzzzzzzzzzzz"}

// diary is a conversation that is decided without any node, and what a model
// server would have seen of it.
type diary struct {
	t       *testing.T
	state   *domain.State
	rules   *domain.Rules
	commits []*rollcallv1.Commit
	byV     map[uint64]*rollcallv1.Commit
	record  []scripted.Request
	// plans of open calls, as they were when the call began.
	plans map[string]domain.StepPlan
}

func newDiary(t *testing.T) *diary {
	return &diary{
		t: t, state: domain.New(key), byV: map[uint64]*rollcallv1.Commit{}, plans: map[string]domain.StepPlan{},
		rules: &domain.Rules{Contracts: contract.All(), DefaultModel: "test"},
	}
}

func (d *diary) decide(cmd *rollcallv1.Command) {
	d.t.Helper()
	v := len(d.commits) + 1
	b, err := d.state.Begin(d.rules, domain.Stamp{Time: time.Unix(int64(1000+v), 0), Node: "n", Epoch: 1, CommitID: fmt.Sprint("c", v)})
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := b.Decide(cmd); err != nil {
		d.t.Fatal(err)
	}
	c := b.Commit()
	if c == nil {
		d.t.Fatalf("nothing happened: %v", cmd)
	}
	if _, err := domain.Seal(c); err != nil {
		d.t.Fatal(err)
	}
	d.state.Committed(c)
	d.commits = append(d.commits, c)
	d.byV[c.GetVersion()] = c
	for _, e := range c.GetEvents() {
		if m := e.GetModelCallStarted(); m != nil {
			d.plans[m.GetMember()], _ = d.state.StepPlan(m.GetMember())
		}
	}
}

// reply answers the member's open call, as a server that records it would.
func (d *diary) reply(member, text string, calls ...*rollcallv1.ToolCall) {
	d.t.Helper()
	plan, ok := d.plans[member]
	if !ok {
		d.t.Fatalf("%s does not call", member)
	}
	req, err := prompt.Build(plan, prompt.Commits{ByVersion: d.byV})
	if err != nil {
		d.t.Fatal(err)
	}
	body, err := model.Encode(req)
	if err != nil {
		d.t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	d.record = append(d.record, scripted.Request{
		Conversation: key.Conversation, Member: plan.Member.Name, Run: plan.Run, Step: fmt.Sprint(plan.Step), Body: body,
	})
	d.decide(&rollcallv1.Command{Actor: member, Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{
		Member: member, Run: plan.Run, Step: plan.Step, Attempt: plan.Attempt, Text: &rollcallv1.Body{Text: text}, Calls: calls,
		Finish: "stop", RequestHash: hex.EncodeToString(sum[:]), Model: "test",
	}}})
}

// sealed chains the commits anew and seals them, as somebody who forges a log
// well would.
func (d *diary) sealed() [][]byte {
	d.t.Helper()
	var out [][]byte
	var hash []byte
	for i, c := range d.commits {
		c.Version, c.PreviousHash = uint64(i)+1, hash
		raw, err := domain.Seal(c)
		if err != nil {
			d.t.Fatal(err)
		}
		hash = c.GetHash()
		out = append(out, raw)
	}
	return out
}

func story(t *testing.T) *diary {
	d := newDiary(t)
	d.decide(&rollcallv1.Command{Id: "open", Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Conversation: key.Conversation, Tenant: key.Tenant, Name: "audit", Contract: "mailbox", Objective: &rollcallv1.Body{Text: "Paint the shed."},
	}}})
	d.reply("lead", "", &rollcallv1.ToolCall{Name: "team_create", Arguments: `{"name":"painters"}`},
		&rollcallv1.ToolCall{Name: "team_member_add", Arguments: `{"name":"Ana","initial_prompt":"Paint."}`})
	d.reply("lead", "Ana paints.")
	d.reply("m1", "", &rollcallv1.ToolCall{Name: "send_message", Arguments: `{"to":"lead","text":"painted"}`})
	d.reply("m1", "Painted.")
	d.reply("lead", "It is painted.")
	return d
}

func TestSoundLog(t *testing.T) {
	d := story(t)
	r := audit.Check(key, d.sealed(), nil)
	r.Compare(d.record)
	if len(r.Problems) != 0 {
		t.Fatal(r.Problems)
	}
	if r.Requests != len(d.record) || *r.Recorded != len(d.record) || r.Version != uint64(len(d.commits)) {
		t.Errorf("%d requests computed again, %d recorded, want %d", r.Requests, *r.Recorded, len(d.record))
	}
	if got := len(r.Members); got != 2 {
		t.Fatalf("%d members", got)
	}
	if lead := r.Members[0]; len(lead.Runs) != 2 || lead.Calls != 3 || lead.Answered != 3 || lead.Runs[0].Started[0] != "msg1" {
		t.Errorf("the Lead's account: %+v", lead)
	}
}

// Each log is forged well, its chain is whole, and must be seen through.
func TestForgedLogs(t *testing.T) {
	started := func(d *diary) *rollcallv1.RunStarted {
		for _, c := range d.commits[1:] {
			for _, e := range c.GetEvents() {
				if r := e.GetRunStarted(); r != nil {
					return r
				}
			}
		}
		return nil
	}
	again := func(m *rollcallv1.Event) *rollcallv1.Commit {
		return &rollcallv1.Commit{Id: "forged", Epoch: 1, Events: []*rollcallv1.Event{m}}
	}
	for _, tc := range []struct {
		code string
		do   func(d *diary)
	}{
		{"run-unjustified", func(d *diary) { started(d).Consumed = nil }},
		{"run-unjustified", func(d *diary) { started(d).Consumed[0].Message = "msg99" }},
		{"mail-of-another", func(d *diary) { started(d).Consumed[0].Message = "msg1" }},
		{"consumed-twice", func(d *diary) {
			r := started(d)
			r.Consumed = append(r.Consumed, r.Consumed[0])
		}},
		{"two-runs", func(d *diary) {
			r := started(d)
			d.commits = slices.Insert(d.commits, 2, again(domain.NewEvent(&rollcallv1.RunStarted{
				Run: "r77", Member: r.GetMember(), Consumed: r.GetConsumed(), AgentHash: r.GetAgentHash(),
			})))
		}},
		{"run-not-open", func(d *diary) {
			d.commits = append(d.commits, again(domain.NewEvent(&rollcallv1.RunFinished{Run: "r1", Member: "lead"})))
		}},
		{"message-twice", func(d *diary) {
			d.commits = append(d.commits, again(domain.NewEvent(&rollcallv1.MessageDelivered{Message: "msg1", To: "lead"})))
		}},
		{"return-unexplained", func(d *diary) {
			d.commits = append(d.commits, again(domain.NewEvent(&rollcallv1.MessageDelivered{Message: "msg77", To: "lead"})),
				again(domain.NewEvent(&rollcallv1.MessagesReturned{Member: "lead", Messages: []*rollcallv1.MessageRef{{Message: "msg77"}}})))
		}},
		{"request-differs", func(d *diary) {
			d.commits[0].Events[0].GetConversationOpened().Agents[0].Name = "other"
			d.commits[0].Events[2].GetMessageDelivered().Body.Text = "Burn the shed."
		}},
		{"call-unexplained", func(d *diary) {
			d.commits = append(d.commits, again(domain.NewEvent(&rollcallv1.ModelReplied{Run: "r1", Member: "lead", Step: 9, Attempt: 1})))
		}},
		{"epoch-falls", func(d *diary) { d.commits[3].Epoch = 0 }},
	} {
		t.Run(tc.code, func(t *testing.T) {
			d := story(t)
			tc.do(d)
			r := audit.Check(key, d.sealed(), nil)
			if !slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return p.Code == tc.code }) {
				t.Errorf("not seen through: %v", r.Problems)
			}
		})
	}
}

// A log that is damaged is read up to the damage, which is named.
func TestDamagedLogs(t *testing.T) {
	for name, damage := range map[string]func([][]byte) [][]byte{
		"a flipped bit": func(s [][]byte) [][]byte { s[2][40] ^= 1; return s },
		"a gap":         func(s [][]byte) [][]byte { return slices.Delete(s, 2, 3) },
		"an exchange":   func(s [][]byte) [][]byte { s[2], s[3] = s[3], s[2]; return s },
		"no commit":     func(s [][]byte) [][]byte { s[2] = []byte("hello"); return s },
	} {
		t.Run(name, func(t *testing.T) {
			r := audit.Check(key, damage(story(t).sealed()), nil)
			if len(r.Problems) == 0 || r.Problems[0].Code != "log-broken" || r.Problems[0].Version != 3 || r.Version != 2 {
				t.Errorf("version %d, %v", r.Version, r.Problems)
			}
		})
	}
}

// The model server's record is held against the log.
func TestCompare(t *testing.T) {
	for code, change := range map[string]func([]scripted.Request) []scripted.Request{
		"call-unexplained": func(q []scripted.Request) []scripted.Request { return append(q, q[1]) },
		"request-differs":  func(q []scripted.Request) []scripted.Request { q[1].Body = []byte("{}"); return q },
		"reply-unrecorded": func(q []scripted.Request) []scripted.Request { return q[:len(q)-1] },
		"record-odd":       func(q []scripted.Request) []scripted.Request { q[1].Step = ""; return q },
	} {
		t.Run(code, func(t *testing.T) {
			d := story(t)
			r := audit.Check(key, d.sealed(), nil)
			r.Compare(change(d.record))
			if len(r.Problems) == 0 || r.Problems[0].Code != code {
				t.Error(r.Problems)
			}
		})
	}
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
