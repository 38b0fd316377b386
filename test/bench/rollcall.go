package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/node"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// rollcall is a whole node, used as any outsider uses one: over its own NATS
// connection, by the inbox, the service and the log. An agent is a
// conversation of one; a team's agents are the members of one conversation.
type rollcall struct {
	node   *node.Node
	nc     *nats.Conn
	client *api.Client
	store  *eventstore.JetStream
	memory string
	done   *waiting
	stop   context.CancelFunc
	ended  chan struct{}
}

// modelName is what the agents ask for.
const modelName = "bench"

// patience bounds what a loaded machine may need.
const patience = time.Minute

func startRollcall(ctx context.Context, o options) (*rollcall, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := startNode(ctx, node.Config{Log: log, Settings: &config.Settings{
		Data: o.data, SyncAlways: o.always(), Model: modelName, BaseURL: o.stub,
		// More than any workload has in flight: the bound itself is not what is measured.
		MaxRuns: 256, WarmMembers: 20_000,
	}})
	if err != nil {
		return nil, err
	}
	r := &rollcall{node: n, memory: o.memory, done: newWaiting(), ended: make(chan struct{})}
	if err := r.connect(ctx); err != nil {
		return nil, errors.Join(err, n.Close(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// startNode waits for the lock of a process that was killed and is not yet
// quite gone: a large one takes the kernel a moment.
func startNode(ctx context.Context, cfg node.Config) (*node.Node, error) {
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		n, err := node.Start(ctx, cfg)
		refused, ok := errors.AsType[*domain.Refusal](err)
		if !ok || refused.Code != "data-directory-in-use" || time.Now().After(deadline) {
			return n, err
		}
	}
}

// connect is what an outsider does: dial, and follow the log from here on.
func (r *rollcall) connect(ctx context.Context) error {
	at := r.node.Address()
	var err error
	if r.nc, err = api.Dial(api.Target{URL: at.URL, Token: at.Token}, "bench"); err != nil {
		return err
	}
	r.client = api.NewClient(r.nc, tenant)
	r.client.Patience = patience
	if r.store, err = eventstore.Open(ctx, r.nc, eventstore.Config{}); err != nil {
		return err
	}
	from, err := r.store.LastSeq(ctx)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	go func() {
		defer close(r.ended)
		_ = r.store.Follow(following, from, func(rec eventstore.Recorded) error { // ends with the connection
			r.done.take(rec)
			return nil
		}, nil)
	}()
	return nil
}

func (r *rollcall) close() error {
	r.stop()
	<-r.ended
	r.nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.node.Close(ctx)
}

const tenant = "main"

// keyOf is the conversation of an agent or a team, the same after a restart.
func keyOf(name string) domain.Key {
	sum := sha256.Sum256([]byte(name))
	var id ulid.ULID
	copy(id[6:], sum[:]) // the first six bytes are a time: none
	return domain.Key{Tenant: tenant, Conversation: strings.ToLower(id.String())}
}

// opening is a conversation of the agent alone, or of a lead and a team.
func (r *rollcall) opening(name string, team []string) *rollcallv1.OpenConversation {
	memory, err := api.ParseMemory(r.memory)
	if err != nil {
		panic(err) // the flag was checked
	}
	agent := func(name string) *rollcallv1.AgentDefinition {
		return &rollcallv1.AgentDefinition{Name: name, Prompt: promptOf(name), Memory: memory}
	}
	o := &rollcallv1.OpenConversation{
		Conversation: keyOf(name).Conversation, Tenant: tenant, Name: name, Contract: "none",
		LeadAgent: "agent", Agents: []*rollcallv1.AgentDefinition{agent("agent")},
	}
	if team != nil {
		o.Contract = "mailbox"
	}
	for _, m := range team {
		o.Members = append(o.Members, &rollcallv1.MemberSpec{Name: m, AgentType: "agent"})
	}
	return o
}

func (r *rollcall) agents(ctx context.Context, names []string) error {
	return each(names, 50, func(name string) error { return r.open(ctx, name, nil) })
}

func (r *rollcall) open(ctx context.Context, name string, team []string) error {
	_, err := r.client.Open(ctx, r.opening(name, team))
	if refused, ok := errors.AsType[*domain.Refusal](err); ok && refused.Code == "conversation-exists" {
		return nil
	}
	return err
}

// publish puts a message into the inbox and returns when it is stored. Its id
// makes it harmless to send again what a slow disk left unanswered.
func (r *rollcall) publish(ctx context.Context, key domain.Key, member, contentType string, data []byte) error {
	header := map[string]string{eventstore.HeaderContentType: contentType, eventstore.HeaderID: api.NewID()}
	for {
		_, _, err := r.store.Publish(ctx, eventstore.Envelope{Key: key, To: member, Data: data, Header: header})
		if !errors.Is(err, nats.ErrTimeout) || ctx.Err() != nil {
			return err
		}
	}
}

// take has one member of a conversation answer a message.
func (r *rollcall) take(ctx context.Context, key domain.Key, member, text string) (string, error) {
	answered, forget := r.done.expect(key, idOf(text))
	defer forget()
	if err := r.publish(ctx, key, member, "text/plain", []byte(text)); err != nil {
		return "", err
	}
	select {
	case a := <-answered:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (r *rollcall) turn(ctx context.Context, agent, text string) (string, error) {
	return r.take(ctx, keyOf(agent), domain.LeadID, text)
}

func (r *rollcall) send(ctx context.Context, agent, text string) error {
	body, err := api.Marshal(map[string]string{"text": text, "mode": "queue"})
	if err != nil {
		return err
	}
	return r.publish(ctx, keyOf(agent), domain.LeadID, "application/json", body)
}

func (r *rollcall) pingPong(ctx context.Context, run string, n int) error {
	if err := r.open(ctx, "ping-pong", []string{"Ping", "Pong"}); err != nil {
		return err
	}
	for i := range n {
		if _, err := r.take(ctx, keyOf("ping-pong"), fmt.Sprintf("m%d", i%2+1), textOf(fmt.Sprintf("%s.%d", run, i))); err != nil {
			return err
		}
	}
	return nil
}

func (r *rollcall) diamond(ctx context.Context, run string, members int) error {
	name := fmt.Sprintf("diamond of %d", members)
	ids := make([]string, members)
	team := make([]string, members)
	for i := range ids {
		ids[i], team[i] = fmt.Sprintf("m%d", i+1), fmt.Sprintf("Member %d", i+1)
	}
	if err := r.open(ctx, name, team); err != nil {
		return err
	}
	ask := func(member string) error {
		_, err := r.take(ctx, keyOf(name), member, textOf(run+"."+member))
		return err
	}
	if err := ask(domain.LeadID); err != nil {
		return err
	}
	if err := each(ids, members, ask); err != nil {
		return err
	}
	_, err := r.take(ctx, keyOf(name), domain.LeadID, textOf(run+".join"))
	return err
}

func (r *rollcall) state(ctx context.Context, agent string) ([]string, error) {
	b := newBook()
	ids := []string{}
	_, err := r.client.Log(ctx, keyOf(agent).Conversation, 1, func(raw []byte) error {
		c, err := domain.Unseal(raw)
		if err != nil {
			return err
		}
		for _, t := range b.add(c) {
			if t.err == nil {
				ids = append(ids, t.ids...)
			}
		}
		return nil
	})
	return ids, err
}

// all calls the roll: every member answers from its own actor. A turn of one
// message is two commits, and nothing else follows the opening.
func (r *rollcall) all(ctx context.Context) (agents, turns int, err error) {
	roll, err := r.client.Roll(ctx, api.ReadRequest{})
	if err != nil {
		return 0, 0, err
	}
	for _, m := range roll.Members {
		turns += int(m.Version-1) / 2
	}
	return len(roll.Members), turns, nil
}
