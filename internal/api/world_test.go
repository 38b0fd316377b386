package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/ingress"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
	"github.com/rollcall-dev/rollcall/projections"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMain(m *testing.M) { natsdtest.VerifyTestMain(m) }

const patience = time.Minute

// world is the service on a real NATS server, over a store in memory and real
// read models. In place of actors an owner decides what comes in, and nothing
// ever calls a model: a test plays the members.
type world struct {
	t      *testing.T
	nats   *natsd.Server
	nc     *nats.Conn
	store  *memory.Store
	views  *projections.DB
	server *api.Server
	client *api.Client
	rolls  []api.MemberRoll

	mu     sync.Mutex // one decision at a time
	states map[domain.Key]*domain.State
	ends   map[domain.Key]eventstore.Position
	rules  *domain.Rules
	// deaf owners leave what comes in where it is.
	deaf bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, nats: natsdtest.Start(t), store: memory.New(), states: map[domain.Key]*domain.State{}, ends: map[domain.Key]eventstore.Position{},
		rules: &domain.Rules{Contracts: contract.All(), DefaultModel: "scripted"},
	}
	t.Cleanup(w.store.Close)
	w.nc = w.connect()
	var err error
	if w.views, err = projections.Open(t.Context(), filepath.Join(t.TempDir(), "views.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.views.Close() })
	w.background(func(ctx context.Context) { _ = w.views.Run(ctx, w.store) })
	for p := range domain.Partitions {
		w.own(p)
	}
	w.serve(api.Config{})
	w.client = api.NewClient(w.nc, "main")
	w.client.Poll = 20 * time.Millisecond
	return w
}

// serve starts the service with the world's seams.
func (w *world) serve(cfg api.Config) {
	w.t.Helper()
	if cfg.Store == nil {
		cfg.Store = w.store
	}
	cfg.Views, cfg.Roller, cfg.Doctor, cfg.Node, cfg.Version = w.views, w, w, "n-test", "1.2.3"
	cfg.Rules = w.rules
	s, err := api.Serve(w.nc, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = s
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) connect() *nats.Conn {
	w.t.Helper()
	return natsdtest.Connect(w.t, w.nats)
}

func (w *world) background(fn func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { fn(ctx) })
	w.t.Cleanup(func() { stop(); done.Wait() })
}

// own decides what comes into a partition.
func (w *world) own(partition int) {
	w.t.Helper()
	lease, err := w.store.Claim(w.t.Context(), "n-test", partition)
	if err != nil {
		w.t.Fatal(err)
	}
	in, err := w.store.Receive(w.t.Context(), lease)
	if err != nil {
		w.t.Fatal(err)
	}
	w.background(func(ctx context.Context) {
		defer in.Close()
		for {
			d, err := in.Next(ctx)
			if err != nil {
				return
			}
			w.take(ctx, d)
		}
	})
}

func (w *world) take(ctx context.Context, d eventstore.Delivery) {
	w.mu.Lock()
	deaf := w.deaf
	w.mu.Unlock()
	if deaf {
		return
	}
	e := d.Envelope()
	answer := &rollcallv1.Answer{Conversation: e.Key.Conversation}
	cmd, err := ingress.Decode(e, d.Seq(), d.Time())
	if err == nil {
		var r domain.Result
		if r, err = w.decide(e.Key, cmd); err == nil {
			answer.Version, answer.Subject = r.Version, r.Subject
		}
	}
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		answer.Refusal = &rollcallv1.Refusal{Code: refused.Code, What: refused.What, Why: refused.Why, Try: refused.Try}
	}
	_ = d.Ack(ctx)
	if reply := e.Header[eventstore.HeaderReply]; reply != "" {
		data, _ := proto.Marshal(answer)
		_ = w.nc.Publish(reply, data)
	}
}

// decide decides one command and stores its commit.
func (w *world) decide(key domain.Key, cmd *rollcallv1.Command) (domain.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.states[key]
	if s == nil {
		s = domain.New(key)
	}
	b, err := s.Begin(w.rules, domain.Stamp{Time: time.Now(), Node: "n-test", Epoch: 1, CommitID: api.NewID()})
	if err != nil {
		return domain.Result{}, err
	}
	r, err := b.Decide(cmd)
	if err != nil {
		return r, err
	}
	w.states[key] = s
	if c := b.Commit(); c != nil {
		stored, err := w.store.Append(context.Background(), key, w.ends[key], c)
		if err != nil {
			return r, err
		}
		w.ends[key] = stored.Position()
		s.Committed(c)
	}
	return r, nil
}

func (w *world) position(key domain.Key) (p eventstore.Position) {
	_ = w.store.Load(context.Background(), key, p, func(r eventstore.Recorded) error {
		p = r.Position()
		return nil
	})
	return p
}

// Roll implements api.Roller.
func (w *world) Roll(_ context.Context, _ domain.Key, partitions []int) ([]api.MemberRoll, []int, error) {
	return slices.Clone(w.rolls), partitions, nil
}

// Diagnose implements api.Doctor.
func (w *world) Diagnose(context.Context, string, bool) ([]api.Check, error) {
	return []api.Check{{Name: "storage", Level: api.OK, Found: "fine"}}, nil
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// open opens a conversation with members and returns its key.
func (w *world) open(name string, members ...string) domain.Key {
	w.t.Helper()
	o := &rollcallv1.OpenConversation{Name: name, Contract: "mailbox", Objective: &rollcallv1.Body{Text: "go on"}}
	for _, m := range members {
		o.Members = append(o.Members, &rollcallv1.MemberSpec{Name: m, Brief: "work"})
	}
	a, err := w.client.Open(w.context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return domain.Key{Tenant: "main", Conversation: a.Conversation}
}

// say sends words to the Lead and returns the version that holds them.
func (w *world) say(key domain.Key, text string) api.AnswerBody {
	w.t.Helper()
	a, err := w.client.Send(w.context(), key.Conversation, words("", text))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func words(to, text string) *rollcallv1.PostMessage {
	return &rollcallv1.PostMessage{
		To: to, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Mode: rollcallv1.MailMode_MAIL_MODE_STEER,
		Body: &rollcallv1.Body{Text: text},
	}
}

// ask sends JSON as any NATS client would; refused is nil when it was answered.
func (w *world) ask(verb, request string) (answer map[string]any, refused *api.ErrorBody) {
	w.t.Helper()
	m, err := w.nc.Request("rollcall.api.main."+verb, []byte(request), patience)
	if err != nil {
		w.t.Fatalf("%s: %v", verb, err)
	}
	if m.Header.Get("Nats-Service-Error-Code") != "" {
		refused = new(api.ErrorBody)
		if err := json.Unmarshal(m.Data, refused); err != nil {
			w.t.Fatalf("%s: %v in %s", verb, err, m.Data)
		}
		return nil, refused
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		w.t.Fatalf("%s: %v in %s", verb, err, m.Data)
	}
	return answer, nil
}

// refused fails unless err is a refusal of the code that says enough.
func refused(t *testing.T, err error, code string, says ...string) *domain.Refusal {
	t.Helper()
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok || r.Code != code {
		t.Fatalf("got %v, want a refusal %s", err, code)
	}
	if r.What == "" || r.Why+r.Try == "" {
		t.Errorf("the refusal says too little: %+v", r)
	}
	for _, s := range says {
		if !strings.Contains(fmt.Sprintf("%s|%s|%s", r.What, r.Why, r.Try), s) {
			t.Errorf("the refusal %v does not say %q", r, s)
		}
	}
	return r
}

// nodeDir is a data directory whose node.json leads to the world's server.
func (w *world) nodeDir() string {
	w.t.Helper()
	dir := w.t.TempDir()
	if err := nodefile.Write(dir, nodefile.Info{PID: 1, URL: w.nats.URL, Token: natsdtest.Token}); err != nil {
		w.t.Fatal(err)
	}
	return dir
}
