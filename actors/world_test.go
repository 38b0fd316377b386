package actors_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/contract/subagent"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	"github.com/rollcall-dev/rollcall/internal/tool/files"
	"github.com/rollcall-dev/rollcall/internal/tool/mail"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = domain.Key{Tenant: "main", Conversation: "01jzzzzzzzzzzzzzzzzzzzzzzz"}

// brain answers in place of a model and keeps its own record of what it was
// asked: counts of calls come from here, not from the log.
type brain struct {
	mu    sync.Mutex
	calls []asked
	// think gives the reply; it may wait on ctx.
	think func(ctx context.Context, from model.Caller, r request) (model.Reply, error)
	// pass and held are the gate of its server; nil: it is open.
	pass func(context.Context) error
	held func() time.Duration
}

type asked struct {
	from model.Caller
	body string
}

// request is a request with ways to look at it.
type request struct {
	model.Request
	said string
}

// text is everything but the system message.
func (r request) text() string { return r.said }

func asRequest(r model.Request) request {
	var b strings.Builder
	for _, m := range r.Messages {
		if m.Role == "system" {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "%s(%s)\n", c.GetName(), c.GetArguments())
		}
	}
	return request{Request: r, said: b.String()}
}

func (r request) has(s string) bool { return strings.Contains(r.text(), s) }

// called counts the calls of a tool so far.
func (r request) called(name string) (n int) {
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			if c.GetName() == name {
				n++
			}
		}
	}
	return n
}

func (b *brain) Pass(ctx context.Context) error {
	if b.pass != nil {
		return b.pass(ctx)
	}
	return ctx.Err()
}

func (b *brain) Held() time.Duration {
	if b.held != nil {
		return b.held()
	}
	return 0
}

func (b *brain) Call(ctx context.Context, from model.Caller, req model.Request, onText func(string)) (model.Reply, error) {
	body, err := model.Encode(req)
	if err != nil {
		return model.Reply{}, err
	}
	b.mu.Lock()
	b.calls = append(b.calls, asked{from: from, body: string(body)})
	b.mu.Unlock()
	reply, err := b.think(ctx, from, asRequest(req))
	if err == nil && onText != nil {
		onText(reply.Text)
	}
	if reply.Finish == "" {
		reply.Finish = "stop"
	}
	sum := sha256.Sum256(body)
	reply.RequestHash = hex.EncodeToString(sum[:])
	return reply, err
}

func (b *brain) record() []asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]asked(nil), b.calls...)
}

func (b *brain) count(member string) (n int) {
	for _, c := range b.record() {
		if c.from.Member == member {
			n++
		}
	}
	return n
}

func say(text string) model.Reply { return model.Reply{Text: text} }

func call(name, args string) *rollcallv1.ToolCall {
	return &rollcallv1.ToolCall{Name: name, Arguments: args}
}

func calls(c ...*rollcallv1.ToolCall) model.Reply {
	return model.Reply{Calls: c, Finish: "tool_calls"}
}

// world is one storage and the nodes that come and go on it, in virtual time.
type world struct {
	t     *testing.T
	disk  *memory.Store
	brain *brain
	extra []tool.Tool
	// wrap may put something around the contracts.
	wrap func(domain.Contract) domain.Contract
	// runs bounds the model calls in flight; 0: as many as a node allows.
	runs int

	mu      sync.Mutex
	answers map[string]chan *rollcallv1.Answer
	asked   int
	// snapshotEvery is the node's setting; 0 for the usual.
	snapshotEvery uint64
	// warm is the node's setting; 0 for the usual, less for none.
	warm int
}

// settleLetters lets what counts dead letters end, which it does after a second:
// a bubble must not end before its goroutines. It is for the first clean-up, the
// last to run. In real time nobody waits for it; a bubble's begins with 2000.
func settleLetters(t *testing.T) {
	if time.Now().Year() == 2000 {
		t.Cleanup(func() { <-time.After(2 * time.Second) })
	}
}

func newWorld(t *testing.T, think func(context.Context, model.Caller, request) (model.Reply, error)) *world {
	settleLetters(t)
	w := &world{t: t, disk: memory.New(), brain: &brain{think: think}, answers: map[string]chan *rollcallv1.Answer{}}
	t.Cleanup(w.disk.Close)
	t.Cleanup(w.judge)
	return w
}

// node starts a node on the world's storage, seen through the given faults.
func (w *world) node(faults ...faulty.Fault) (*actors.Node, *faulty.Store) {
	return w.named("n1", faults...)
}

func (w *world) named(name string, faults ...faulty.Fault) (*actors.Node, *faulty.Store) {
	store := faulty.New(w.disk, faults...)
	return w.seen(name, store), store
}

// seen starts a node that sees the storage through the faults of store.
func (w *world) seen(name string, store *faulty.Store) *actors.Node {
	return w.start(name, store, func(send func() error) error { return store.Do(faulty.Reply, send) })
}

// on starts a node on another view of the storage.
func (w *world) on(store eventstore.Store) *actors.Node {
	return w.start("n1", store, func(send func() error) error { return send() })
}

func (w *world) start(name string, store eventstore.Store, reply func(func() error) error) *actors.Node {
	tools := append(append(files.New(store), mail.New(store)), w.extra...)
	rules := &domain.Rules{Contracts: contract.All(), Delegation: subagent.Delegation{}, DefaultModel: "test"}
	if w.wrap != nil {
		rules.Contracts = map[string]domain.Contract{"mailbox": w.wrap(contract.All()["mailbox"])}
	}
	for _, t := range tools {
		rules.Tools = append(rules.Tools, t.Definition())
	}
	level := slog.LevelError
	if os.Getenv("ROLLCALL_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	n, err := actors.Start(w.t.Context(), actors.Config{
		Node: name, Store: store, Models: w.brain, Tools: tools, Rules: rules,
		Partitions: []int{key.Partition()}, MaxRuns: w.runs,
		Log: slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: level})),
		Answer: func(subject string, a *rollcallv1.Answer) {
			_ = reply(func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				select {
				case w.answers[subject] <- a:
				default: // nobody waits, or it was answered before
				}
				return nil
			})
		},
		SnapshotEvery: w.snapshotEvery, WarmMembers: w.warm,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) close(n *actors.Node) {
	w.t.Helper()
	if err := n.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
}

// ask sends a command by the inbox and returns where its answer comes.
func (w *world) ask(cmd *rollcallv1.Command) <-chan *rollcallv1.Answer {
	w.t.Helper()
	answer, err := w.through(w.disk, cmd)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// through asks by a node's view of the inbox, as its service does.
func (w *world) through(inbox eventstore.Inbox, cmd *rollcallv1.Command) (<-chan *rollcallv1.Answer, error) {
	w.t.Helper()
	w.mu.Lock()
	w.asked++
	reply := fmt.Sprintf("reply-%d", w.asked)
	if cmd.GetId() == "" {
		cmd.Id = fmt.Sprintf("cmd-%d", w.asked)
	}
	ch := make(chan *rollcallv1.Answer, 1)
	w.answers[reply] = ch
	w.mu.Unlock()
	return ch, w.publish(inbox, cmd, reply)
}

// publish sends a command by the inbox; nobody waits where reply is empty.
func (w *world) publish(inbox eventstore.Inbox, cmd *rollcallv1.Command, reply string) error {
	w.t.Helper()
	data, err := proto.Marshal(cmd)
	if err != nil {
		w.t.Fatal(err)
	}
	header := map[string]string{eventstore.HeaderContentType: "application/protobuf", eventstore.HeaderID: cmd.GetId()}
	if reply != "" {
		header[eventstore.HeaderReply] = reply
	}
	_, _, err = inbox.Publish(w.t.Context(), eventstore.Envelope{Key: key, To: "_", Data: data, Header: header})
	return err
}

// do asks and waits for a yes.
func (w *world) do(cmd *rollcallv1.Command) *rollcallv1.Answer {
	w.t.Helper()
	select {
	case a := <-w.ask(cmd):
		if r := a.GetRefusal(); r != nil {
			w.t.Fatalf("refused: %v", r)
		}
		return a
	case <-time.After(time.Minute):
		w.t.Fatal("no answer")
		return nil
	}
}

func (w *world) open(objective string) {
	w.t.Helper()
	w.do(openCommand(objective))
}

func openCommand(objective string) *rollcallv1.Command {
	return &rollcallv1.Command{Id: "open", Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Conversation: key.Conversation, Tenant: key.Tenant, Name: "test", Contract: "mailbox", Objective: &rollcallv1.Body{Text: objective},
	}}}
}

func post(to, text string, mode rollcallv1.MailMode) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{
		To: to, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Mode: mode, Body: &rollcallv1.Body{Text: text},
	}}}
}

// state folds the log as an auditor would.
func (w *world) state() *domain.State {
	w.t.Helper()
	s, _, err := actors.Load(w.t.Context(), w.disk, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// until polls the log in virtual time.
func (w *world) until(what string, ok func(*domain.State) bool) *domain.State {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		synctest.Wait()
		s := w.state()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s\n%s", what, w.story())
		}
		<-time.After(pause)
	}
}

// quiet waits until nothing is due and nothing is left in the inbox.
func (w *world) quiet() *domain.State {
	w.t.Helper()
	return w.until("quiet", func(s *domain.State) bool {
		return s.Opened && len(domain.Due(s)) == 0 && w.disk.Pending(key.Partition()) == 0
	})
}

// events returns all events of the log, in order.
func (w *world) events() (all []*rollcallv1.Event) {
	w.t.Helper()
	err := w.disk.Load(w.t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		all = append(all, r.Commit.GetEvents()...)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) story() string {
	var b strings.Builder
	for _, e := range w.events() {
		if e.GetAgentBound() != nil {
			continue // long, and always the same
		}
		fmt.Fprintln(&b, domain.EventName(e), strings.ReplaceAll(e.String(), "\n", " "))
	}
	return b.String()
}
