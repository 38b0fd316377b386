package cli

import (
	"context"
	"errors"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// following is a conversation being watched: its state is folded here, by the
// same rules as on the node.
type following struct {
	s      *session
	client *api.Client
	// key of the conversation, known from the first commit on.
	key   domain.Key
	state *domain.State
	// shown is the version up to which events were told in an earlier life.
	shown    uint64
	teller   *teller
	progress progress
	// events counts what happened so far; answer is the Lead's last word.
	events int
	answer *rollcallv1.Body
	// enough says when to stop; it is asked at the end of the log.
	enough func(*domain.State) bool
	// revive brings a lost node back; nil: wait for somebody else to do it.
	revive func(context.Context) (*api.Client, error)
	// seen, if set, is called with every commit.
	seen func(api.Update)
}

// settled reports that nothing is due any more.
func settled(s *domain.State) bool { return s.Opened && len(domain.Due(s)) == 0 }

// follow watches a conversation until enough. With --json it prints every
// event on stdout.
func (s *session) follow(c *api.Client, enough func(*domain.State) bool) *following {
	return &following{s: s, client: c, teller: newTeller(), progress: s.newProgress(), enough: enough}
}

// run returns nil when it is enough; otherwise the context's error, or a
// *domain.Refusal.
func (f *following) run(ctx context.Context, conversation string) error {
	defer f.progress.done()
	for {
		f.client.FollowPatience = followPatience
		if f.revive != nil {
			f.client.FollowPatience = revivePatience
		}
		err := f.once(ctx, conversation)
		var lost *domain.Refusal
		if f.revive == nil || ctx.Err() != nil || !errors.As(err, &lost) || lost.Code != "node-unreachable" {
			return err
		}
		f.progress.done()
		f.s.say("the node does not answer any more; starting it again")
		if f.client, err = f.revive(ctx); err != nil {
			return err
		}
	}
}

const (
	followPatience = 30 * time.Second
	revivePatience = 4 * time.Second
)

// once follows until enough or until the node is lost for good.
func (f *following) once(ctx context.Context, conversation string) error {
	return f.client.Follow(ctx, conversation, 1, func(u api.Update) error {
		if u.Text != nil {
			f.progress.text(*u.Text)
			return nil
		}
		if f.state != nil && u.Commit.GetVersion() <= f.state.Version {
			return nil // told before the node was lost
		}
		f.take(u)
		if u.Live && f.enough(f.state) {
			return api.ErrStop
		}
		return nil
	})
}

func (f *following) take(u api.Update) {
	if f.state == nil {
		o := u.Commit.GetEvents()[0].GetConversationOpened()
		f.key = domain.Key{Tenant: o.GetTenant(), Conversation: o.GetConversation()}
		f.state = domain.New(f.key)
	}
	f.state.Evolve(u.Commit)
	told := f.teller.hear(u.Commit)
	f.events += len(told)
	for _, e := range u.Commit.GetEvents() {
		if r := e.GetLeadReplied(); r != nil {
			f.answer = r.GetText()
		}
	}
	if u.Commit.GetVersion() > f.shown {
		if f.s.flags.json {
			for _, l := range u.Lines {
				f.s.line(f.s.Out, l)
			}
		}
		f.progress.commit(u, told, f.state)
	}
	if f.seen != nil {
		f.seen(u)
	}
}

// result is the last line of `run --json`.
type result struct {
	Type         string `json:"type"`
	Conversation string `json:"conversation"`
	Version      uint64 `json:"version"`
	// Status is done, failed, waiting, budget, timeout or interrupted.
	Status string `json:"status"`
	Exit   int    `json:"exit"`
	// Why says in a sentence what is not done.
	Why string `json:"why,omitempty"`
	// Answer is the Lead's last word to the operator.
	Answer string      `json:"answer"`
	Usage  resultUsage `json:"usage"`
	// Files that were saved, as paths below --output.
	Files []string `json:"files,omitempty"`
}

// resultUsage is what the conversation's model calls used so far.
type resultUsage struct {
	Calls        uint64  `json:"calls"`
	InputTokens  uint64  `json:"input_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost"`
}

// result of the conversation as it stands; ended is the error that ended the
// watching, nil when it was enough.
func (f *following) result(ctx context.Context, ended error) (result, error) {
	r := result{Type: api.TypeResult, Conversation: f.key.Conversation}
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		r.Status, r.Exit = "timeout", api.ExitTimeout
	case errors.Is(ended, context.Canceled):
		r.Status, r.Exit = "interrupted", api.ExitInterrupted
	case ended != nil:
		return r, ended
	}
	if f.state == nil {
		return r, nil
	}
	r.Version = f.state.Version
	if ended == nil {
		v := f.state.Verdict()
		r.Status, r.Exit, r.Why = v.Status, v.Exit, v.Why
	}
	u := f.state.Used
	r.Usage = resultUsage{Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: api.Units(u.CostMicros)}
	if f.answer != nil {
		if ended != nil { // what the user waited for is fetched also after Ctrl-C
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
		}
		text, err := f.client.BodyText(ctx, f.key.Conversation, f.answer)
		if err != nil {
			return r, err
		}
		r.Answer = text
	}
	return r, nil
}
