package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// moody is a store that is slow or silent when told so, and counts loads.
type moody struct {
	eventstore.Store
	// slowAppend and slowLoad hold such calls while they are true; mute leaves
	// renewals without an answer.
	slowAppend, slowLoad, mute atomic.Bool
	loads                      atomic.Int64
	renewed                    atomic.Int64
}

func (m *moody) while(ctx context.Context, on *atomic.Bool) error {
	for on.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

func (m *moody) Append(ctx context.Context, k domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	if err := m.while(ctx, &m.slowAppend); err != nil {
		return eventstore.Recorded{}, err
	}
	return m.Store.Append(ctx, k, after, c)
}

func (m *moody) Load(ctx context.Context, k domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	m.loads.Add(1)
	if err := m.while(ctx, &m.slowLoad); err != nil {
		return err
	}
	return m.Store.Load(ctx, k, after, fn)
}

func (m *moody) Renew(ctx context.Context, l eventstore.Lease) error {
	if err := m.while(ctx, &m.mute); err != nil {
		return err
	}
	m.renewed.Store(time.Now().UnixNano())
	return m.Store.Renew(ctx, l)
}

// deployment is a tool that is not idempotent and ends when it is told to.
type deployment struct {
	calls atomic.Int64
	end   chan struct{}
}

func (d *deployment) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: "deploy", Description: "deploys", Schema: `{"type":"object"}`}
}

func (d *deployment) Call(ctx context.Context, _ domain.ToolPlan, _ json.RawMessage) (tool.Outcome, error) {
	d.calls.Add(1)
	select {
	case <-d.end:
		return tool.Outcome{Output: "deployed"}, nil
	case <-ctx.Done():
		return tool.Outcome{}, ctx.Err()
	}
}

// What is decided at once may be too large for one commit. It is decided again
// in parts, and nobody's open call or tool is disturbed: none was lost.
func TestTooLargeCommitDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, bob := make(chan struct{}), make(chan struct{})
		w := newWorld(t, func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
			switch {
			case from.Member == "Ada" && r.called("deploy") == 0:
				return calls(call("deploy", `{}`)), nil
			case from.Member == "Lead" && r.called("task_create") == 0:
				<-plan
				var all []*rollcallv1.ToolCall
				for i := range 8 {
					all = append(all, call("task_create", fmt.Sprintf(`{"title":"t%d","description":%q}`, i, strings.Repeat("d", 31<<10))))
				}
				return calls(all...), nil
			case from.Member == "Bob":
				select {
				case <-bob:
				case <-ctx.Done():
					return model.Reply{}, ctx.Err()
				}
			}
			return say("ok"), nil
		})
		d := &deployment{end: make(chan struct{})}
		w.extra = []tool.Tool{d}
		store := &moody{Store: w.disk}
		n := w.on(store)
		defer w.close(n)
		open := openCommand("go")
		open.GetOpenConversation().Members = []*rollcallv1.MemberSpec{{Name: "Ada", Brief: "deploy"}, {Name: "Bob", Brief: "think"}}
		w.do(open)
		w.until("all are at work", func(*domain.State) bool { return d.calls.Load() == 1 && w.brain.count("Bob") == 1 })
		store.slowAppend.Store(true)
		var answers []<-chan *rollcallv1.Answer
		for i := range 7 {
			answers = append(answers, w.ask(post("m2", fmt.Sprint(i)+strings.Repeat("x", 60<<10), rollcallv1.MailMode_MAIL_MODE_QUEUE)))
			synctest.Wait()
		}
		close(plan)
		synctest.Wait()
		store.slowAppend.Store(false)
		for _, a := range answers {
			if r := (<-a).GetRefusal(); r != nil {
				t.Errorf("refused: %v", r)
			}
		}
		close(d.end)
		close(bob)
		s := w.quiet()
		if resumed(w.events()) != 0 || d.calls.Load() != 1 || strings.Contains(w.story(), "unknown:true") {
			t.Errorf("%d runs taken up again, %d deployments\n%s", resumed(w.events()), d.calls.Load(), w.story())
		}
		if len(s.Tasks) < 7 { // what one commit does not hold is put off
			t.Errorf("%d tasks", len(s.Tasks))
		}
		justified(t, w.events(), len(w.brain.record()))
		checkCalls(t, w, w.events(), 0)
	})
}

// A conversation leaves memory when it is quiet, also one that crashed before.
func TestConversationThatCrashedLeavesMemory(t *testing.T) {
	for _, crashes := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
				if r.called("task_list") == 0 {
					return calls(call("task_list", `{}`)), nil
				}
				return say("ok"), nil
			})
			broken := &crashingContract{left: crashes}
			w.wrap = func(c domain.Contract) domain.Contract { broken.Contract = c; return broken }
			store := &moody{Store: w.disk}
			n := w.on(store)
			defer w.close(n)
			w.open("first")
			w.quiet()
			<-time.After(30 * time.Minute)
			before := store.loads.Load()
			w.do(post("lead", "hello again", 0))
			if store.loads.Load() == before {
				t.Errorf("after %d crashes it was still in memory after half an hour", crashes)
			}
			w.quiet()
		})
	}
}

// A lease whose renewals hang is given up while it still lasts: runs end
// before another node can begin them again.
func TestRunsEndBeforeTheLeaseLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			<-ctx.Done()
			ended.CompareAndSwap(0, time.Now().UnixNano())
			return model.Reply{}, ctx.Err()
		})
		store := &moody{Store: w.disk}
		n := w.on(store)
		defer w.close(n)
		w.open("go")
		w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 && store.renewed.Load() > 0 })
		store.mute.Store(true)
		w.until("the run ends", func(*domain.State) bool { return ended.Load() != 0 })
		store.mute.Store(false)
		if d := time.Duration(ended.Load() - store.renewed.Load()); d > eventstore.LeaseTTL*9/10 {
			t.Errorf("the run went on for %s after the last renewal, the lease lasts %s", d, eventstore.LeaseTTL)
		}
	})
}

// A body that cannot be stored at once keeps its message waiting for moments,
// not until it is delivered again.
func TestShortFaultOfABodyDelaysNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n, _ := w.node(faulty.Fault{Point: faulty.PutBlob, N: 1, How: faulty.Fail})
		defer w.close(n)
		w.open("go")
		began := time.Now()
		w.do(post("lead", strings.Repeat("x", 100<<10), 0))
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("answered after %s", d)
		}
		w.quiet()
	})
}

// A body that is named and not stored, or is no text, is refused at the door:
// in the log it would fail every request that shows it.
func TestBodyThatCannotBeShownIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n, _ := w.node()
		defer w.close(n)
		w.open("go")
		stored := func(text string) *rollcallv1.Blob {
			b, err := w.disk.PutBlob(t.Context(), key, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		for name, tc := range map[string]struct {
			blob *rollcallv1.Blob
			code string
		}{
			"missing": {&rollcallv1.Blob{Sha256: strings.Repeat("ab", 32), Size: 70_000}, "text-invalid"},
			"no text": {stored("\xff\xfe"), "text-invalid"},
			"sound":   {stored("well"), ""},
		} {
			p := post("lead", "", rollcallv1.MailMode_MAIL_MODE_QUEUE)
			p.GetPostMessage().Body = &rollcallv1.Body{Blob: tc.blob}
			if a := <-w.ask(p); a.GetRefusal().GetCode() != tc.code {
				t.Errorf("%s: %v", name, a)
			}
		}
		w.quiet()
		if got := finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_FAILED); got != 0 {
			t.Errorf("%d runs failed", got)
		}
	})
}

// What was refused is not done later, though its acknowledgement was lost.
func TestRefusedMessageIsNeverDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n, _ := w.node(faulty.Fault{Point: faulty.Ack, N: 1, How: faulty.Fail})
		defer w.close(n)
		early := w.ask(post("lead", "too early", 0))
		synctest.Wait()
		w.open("go")
		<-time.After(2 * eventstore.AckWait)
		w.quiet()
		refused := false
		select {
		case a := <-early:
			refused = a.GetRefusal() != nil
		default:
		}
		if done := strings.Contains(w.story(), "too early"); done && refused {
			t.Errorf("refused, and then delivered\n%s", w.story())
		}
	})
}

// The roll is answered although the partition was lost while the conversation
// was being rebuilt for it.
func TestRollOutlastsALostPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n, _ := w.node()
		w.open("go")
		w.quiet()
		w.close(n)
		store := &moody{Store: w.disk}
		store.slowLoad.Store(true)
		n = w.on(store)
		defer w.close(n)
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			got, err := n.Roll(ctx, key)
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%d answered", len(got))
			}
			done <- err
		}()
		<-time.After(time.Second)
		store.mute.Store(true)
		<-time.After(2 * eventstore.LeaseTTL)
		store.slowLoad.Store(false)
		store.mute.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// No more conversations are rebuilt at start than the bound on warm members asks for.
func TestWarmingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for i, made := 0, 0; made < 100; i++ {
			k := domain.Key{Tenant: "main", Conversation: fmt.Sprintf("c%d", i)}
			if k.Partition() != key.Partition() {
				continue
			}
			made++
			b, err := domain.New(k).Begin(&domain.Rules{Contracts: contract.All(), DefaultModel: "test"}, domain.Stamp{Time: time.Now(), Node: "n0", CommitID: k.Conversation})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Decide(&rollcallv1.Command{Id: "open", Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Contract: "mailbox"}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.disk.Append(t.Context(), k, eventstore.Position{}, b.Commit()); err != nil {
				t.Fatal(err)
			}
		}
		store := &moody{Store: w.disk}
		n, err := actors.Start(t.Context(), actors.Config{
			Node: "n1", Store: store, Models: w.brain, Rules: &domain.Rules{Contracts: contract.All()}, WarmMembers: 10,
			Partitions: []int{key.Partition()},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.close(n)
		<-time.After(time.Minute)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if all, err := n.Roll(ctx, domain.Key{Tenant: key.Tenant}); err != nil || len(all) != 100 {
			t.Fatalf("%d answered the roll: %v", len(all), err)
		}
		if got := 100 - store.loads.Load(); got != 10 {
			t.Errorf("%d conversations of one member each were rebuilt before they were asked for, the bound is 10", got)
		}
	})
}

// The wait that one run's failure asks for does not delay the next run.
func TestFailedRunDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error = &model.Error{Code: "model-quota", RetryAfter: time.Hour, What: "429"}
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), err })
		n, _ := w.node()
		defer w.close(n)
		w.open("go")
		w.quiet()
		err = nil
		began := time.Now()
		w.do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
		w.until("the second call", func(*domain.State) bool { return w.brain.count("Lead") == 2 })
		if d := time.Since(began); d > time.Second {
			t.Errorf("called after %s", d)
		}
		w.quiet()
	})
}

// A partition that is lost while one of its conversations is stuck is worked
// on again when that has let go, and not before.
func TestStuckConversationDoesNotOrphanThePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		store := &moody{Store: w.disk}
		feed := &stuckFeed{}
		answered := make(chan *rollcallv1.Answer, 10)
		n, err := actors.Start(t.Context(), actors.Config{
			Node: "n1", Store: store, Models: w.brain, Rules: &domain.Rules{Contracts: contract.All(), DefaultModel: "test"},
			Partitions: []int{key.Partition()}, Feed: feed, Log: slog.New(slog.DiscardHandler),
			Answer: func(_ string, a *rollcallv1.Answer) { answered <- a },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.close(n)
		feed.stuck.Store(int64(time.Minute))
		w.ask(openCommand("go"))
		<-time.After(10 * time.Second)
		store.mute.Store(true)
		<-time.After(10 * time.Second)
		store.mute.Store(false)
		<-answered
		w.quiet()
		w.ask(post("lead", "are you there?", 0))
		select {
		case <-answered:
		case <-time.After(time.Minute):
			t.Error("nobody works on the partition")
		}
	})
}

// stuckFeed blocks the next commit's actor for a while.
type stuckFeed struct{ stuck atomic.Int64 }

func (s *stuckFeed) Committed(eventstore.Recorded) { <-time.After(time.Duration(s.stuck.Swap(0))) }

func (s *stuckFeed) Text(model.Caller, string, string) {}
