package demo_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
	"github.com/rollcall-dev/rollcall/internal/prompt"
	"github.com/rollcall-dev/rollcall/internal/tool"
	"github.com/rollcall-dev/rollcall/internal/tool/files"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// blobs is an object store in memory.
type blobs struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (b *blobs) PutBlob(_ context.Context, _ domain.Key, data []byte) (*rollcallv1.Blob, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	b.data[name] = slices.Clone(data)
	return &rollcallv1.Blob{Sha256: name, Size: uint64(len(data))}, nil
}

func (b *blobs) GetBlob(_ context.Context, _ domain.Key, blob *rollcallv1.Blob) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.data[blob.GetSha256()]
	if !ok {
		return nil, fmt.Errorf("no blob %s", blob.GetSha256())
	}
	return data, nil
}

// A stage is a conversation with everything real but the log, the actors and
// the model's mind.
type stage struct {
	t      *testing.T
	kit    *domaintest.Kit
	server *scripted.Server
	client *model.OpenAI
	tools  map[string]tool.Tool
	store  *blobs
}

func newStage(t *testing.T) *stage {
	t.Helper()
	server, err := scripted.Start(demo.Script(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, server: server, client: model.New(model.Config{BaseURL: server.URL(), Key: t.Name()}), tools: map[string]tool.Tool{}, store: &blobs{data: map[string][]byte{}}}
	t.Cleanup(func() {
		s.client.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "scripted"}
	for _, f := range files.New(s.store) {
		s.tools[f.Definition().GetName()] = f
		rules.Tools = append(rules.Tools, f.Definition())
	}
	s.kit = domaintest.Open(t, rules, "mailbox")
	return s
}

// said is what came back from a member's model call.
type said struct {
	member string
	reply  model.Reply
	err    error
}

// play lets every member work, side by side, until all rest.
func (s *stage) play(to, words string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	s.kit.Do(domaintest.Say(to, words))
	done := make(chan said, 8)
	thinking := map[string]bool{}
	for {
		for _, m := range s.kit.State.Members {
			for m.Run != nil && m.Run.Phase == domain.InTool {
				s.use(ctx, m.ID)
			}
			if m.Run != nil && m.Run.Phase == domain.Calling && !thinking[m.ID] {
				thinking[m.ID] = true
				s.ask(ctx, m.ID, done)
			}
		}
		if len(thinking) == 0 {
			return
		}
		o := <-done
		delete(thinking, o.member)
		if o.err != nil {
			s.t.Fatalf("%s: %v", o.member, o.err)
		}
		s.kit.Do(s.kit.ReplyFinish(o.member, o.reply.Finish, o.reply.Text, o.reply.Calls...))
	}
}

func (s *stage) ask(ctx context.Context, member string, done chan<- said) {
	s.t.Helper()
	plan, ok := s.kit.State.StepPlan(member)
	if !ok {
		s.t.Fatalf("%s has no open model call", member)
	}
	log := prompt.Commits{ByVersion: map[uint64]*rollcallv1.Commit{}}
	for _, v := range prompt.Needs(plan) {
		log.ByVersion[v] = s.kit.Commits[v-1]
	}
	req, err := prompt.Build(plan, log)
	if err != nil {
		s.t.Fatal(err)
	}
	from := model.Caller{Key: plan.Key, Member: plan.Member.Name, Run: plan.Run, Step: plan.Step}
	go func() {
		reply, err := s.client.Call(ctx, from, req, nil)
		done <- said{member, reply, err}
	}()
}

func (s *stage) use(ctx context.Context, member string) {
	s.t.Helper()
	plan, ok := s.kit.State.ToolPlan(member)
	if !ok {
		s.t.Fatalf("%s has no tool to call", member)
	}
	out, err := s.tools[plan.Call.GetName()].Call(ctx, plan, json.RawMessage(plan.Call.GetArguments()))
	if err != nil || out.Error {
		s.t.Fatalf("%s of %s: %v %v", plan.Call.GetName(), member, out, err)
	}
	s.kit.Do(s.kit.ToolDone(member, out.Output, out.Files...))
}

// happened are the events of the log in order, as "TaskCompleted t1".
func (s *stage) happened() []string {
	var list []string
	for _, c := range s.kit.Commits {
		for _, e := range c.GetEvents() {
			switch k := e.GetKind().(type) {
			case *rollcallv1.Event_TaskClaimed:
				list = append(list, "TaskClaimed "+k.TaskClaimed.GetTask())
			case *rollcallv1.Event_TaskCompleted:
				list = append(list, "TaskCompleted "+k.TaskCompleted.GetTask())
			case *rollcallv1.Event_TaskPromoted:
				list = append(list, "TaskPromoted "+k.TaskPromoted.GetTask())
			case *rollcallv1.Event_LeadReplied:
				list = append(list, "LeadReplied "+k.LeadReplied.GetText().GetText())
			case *rollcallv1.Event_ToolCallFinished:
				if k.ToolCallFinished.GetError() {
					list = append(list, "Error "+k.ToolCallFinished.GetOutput().GetText())
				}
			}
		}
	}
	return list
}

func (s *stage) answer() string {
	for _, h := range slices.Backward(s.happened()) {
		if text, ok := strings.CutPrefix(h, "LeadReplied "); ok {
			return text
		}
	}
	return ""
}

func (s *stage) file(member, path string) string {
	s.t.Helper()
	for _, m := range s.kit.State.Members {
		if blob, ok := m.Files[path]; ok && m.Name == member {
			return string(s.store.data[blob.SHA256])
		}
	}
	s.t.Fatalf("%s has no file %s", member, path)
	return ""
}

// TestStory plays every policy and field with the real domain, contract,
// prompts and file tools.
func TestStory(t *testing.T) {
	for name, c := range map[string]struct {
		policy demo.Policy
		field  string
		binds  string
		shows  string
	}{
		"profile-send-update":    {demo.SendUpdate, demo.NewField, "display_name", "Ada"},
		"profile-stale-contract": {demo.StatusOnly, demo.NewField, "name", "Name unavailable"},
		"profile-unchanged":      {demo.StatusOnly, demo.OldField, "name", "Ada"},
		"profile-send-unchanged": {demo.SendUpdate, demo.OldField, "name", "Ada"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.play("", demo.Objective(c.policy, c.field))
			happened := s.happened()
			if got := s.answer(); !strings.HasPrefix(got, "Profile preview: "+c.shows+"\n") {
				t.Errorf("the answer is %q, want %s", got, c.shows)
			}
			if want := `{"` + c.field + `":"Ada"}`; s.file("Backend", "api.json") != want {
				t.Errorf("the API answers %s, want %s", s.file("Backend", "api.json"), want)
			}
			if page := s.file("Frontend", "page.html"); !strings.Contains(page, "response."+c.binds+";") {
				t.Errorf("the page is %s, want it to read %s", page, c.binds)
			}
			at := func(what string) int {
				i := slices.Index(happened, what)
				if i < 0 {
					t.Fatalf("%s did not happen: %q", what, happened)
				}
				return i
			}
			begun, ended := max(at("TaskClaimed t1"), at("TaskClaimed t2")), min(at("TaskCompleted t1"), at("TaskCompleted t2"))
			if begun > ended {
				t.Errorf("t1 and t2 do not overlap: %q", happened)
			}
			if ready := at("TaskPromoted t3"); ready < max(at("TaskCompleted t1"), at("TaskCompleted t2")) || ready > at("TaskClaimed t3") {
				t.Errorf("t3 could start too early: %q", happened)
			}
			at("TaskCompleted t3")
			for _, h := range happened {
				if strings.HasPrefix(h, "Error ") {
					t.Errorf("a tool call failed: %s", h)
				}
			}
			s.onlyItsReaders(c.policy, c.field)
			for _, m := range s.kit.State.Members {
				if domain.Word(m.Status) != "idle" || len(m.Unread) > 0 {
					t.Errorf("%s is %s with %d unread", m.Name, domain.Word(m.Status), len(m.Unread))
				}
			}
			before := len(s.server.Requests())
			s.play("m2", "Which field does your page read?")
			if got := s.server.Requests(); len(got) != before+1 || got[before].RuleName != "rest of Frontend" {
				t.Errorf("the follow-up made %d requests", len(got)-before)
			}
		})
	}
}

// onlyItsReaders: mail is shown to its recipient and to nobody else.
func (s *stage) onlyItsReaders(policy demo.Policy, field string) {
	s.t.Helper()
	contract := mail("Contract: field " + field + ". Example")
	report := mail("Binding key: ")
	shown := map[string]bool{}
	for _, r := range s.server.Requests() {
		if contract.MatchString(r.Messages) {
			shown["contract to "+r.Member] = true
		}
		if report.MatchString(r.Messages) {
			shown["report to "+r.Member] = true
		}
	}
	want := map[string]bool{"report to Lead": true}
	if policy == demo.SendUpdate {
		want["contract to Frontend"] = true
	}
	if fmt.Sprint(shown) != fmt.Sprint(want) {
		s.t.Errorf("shown: %v, want %v", shown, want)
	}
}

func mail(words string) *regexp.Regexp {
	return regexp.MustCompile(`"role":"user","content":"(?:[^"\\]|\\.)*` + regexp.QuoteMeta(words))
}

// TestQuestion: without the words that choose, nothing is made.
func TestQuestion(t *testing.T) {
	s := newStage(t)
	s.play("", "Make me a profile page.")
	if got := s.answer(); !strings.HasPrefix(got, "Which field") || len(s.kit.State.Members) != 1 {
		t.Errorf("the answer is %q", got)
	}
	s.play("", `Field "display_name", status only.`)
	if got := s.answer(); !strings.HasPrefix(got, "Profile preview: Name unavailable") {
		t.Errorf("the answer is %q", got)
	}
}

// TestYAML: the script that is shown is the script that is served.
func TestYAML(t *testing.T) {
	if _, err := scripted.Parse("profile.yaml", demo.YAML()); err != nil {
		t.Fatal(err)
	}
	demo.YAML()[0] = 'x'
	if demo.YAML()[0] != '#' {
		t.Error("a caller can change the script")
	}
}
