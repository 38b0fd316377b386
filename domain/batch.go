package domain

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Stamp is what a commit carries from outside: a decision itself knows no
// clock and makes no ids that are unique beyond its conversation.
type Stamp struct {
	Time     time.Time
	Node     string
	Epoch    uint64
	CommitID string
}

// Batch decides commands in order and collects their events into one commit.
// Each event changes the state as it is emitted. When the commit is not
// appended, the state is worth nothing: throw it away and load it again.
type Batch struct {
	s      *State
	r      *Rules
	limits Limits
	commit *rollcallv1.Commit
	size   int
}

// Result is what an accepted command came to.
type Result struct {
	// Version of the commit that holds the effect; when the command had none,
	// the version of the state.
	Version uint64
	// Subject is the message, task or member the command made, if any.
	Subject string
	// Duplicate: a command of this id had its effect before.
	Duplicate bool
}

// Begin starts a batch on the state. It refuses an epoch lower than the
// state's: another node has taken over. And it refuses a state that this
// program does not understand.
func (s *State) Begin(r *Rules, st Stamp) (*Batch, error) {
	if st.Epoch < s.Epoch {
		return nil, Refuse("stale-epoch", fmt.Sprintf("epoch %d cannot write to %s", st.Epoch, s.Key),
			fmt.Sprintf("a node with epoch %d owns it", s.Epoch), "drop the partition")
	}
	if err := s.Understood(); err != nil {
		return nil, err
	}
	at := st.Time.UTC()
	if at.Before(s.Time) { // arrival decides, no node's clock
		at = s.Time
	}
	return &Batch{
		s: s, r: r, limits: r.Limits.withDefaults(),
		commit: &rollcallv1.Commit{
			Id: st.CommitID, Version: s.Version + 1, PreviousHash: s.LastHash, Time: timestamppb.New(at),
			Node: st.Node, Epoch: st.Epoch, EvolveVersion: EvolveVersion,
		},
	}, nil
}

// Decide decides one command. The error is a *Refusal, and then nothing
// changed. A command whose id had its effect before does nothing again.
func (b *Batch) Decide(cmd *rollcallv1.Command) (Result, error) {
	if e, ok := b.s.Effect(cmd.GetId()); ok && cmd.GetId() != "" {
		return Result{Version: e.Version, Subject: e.Subject, Duplicate: true}, nil
	}
	before := len(b.commit.GetEvents())
	d := &Decision{b: b, actor: cmd.GetActor(), base: b.size}
	subject, refusal := d.decide(cmd)
	if refusal != nil {
		b.mustNotHaveChanged(before, refusal)
		return Result{}, refusal
	}
	if b.s.Opened {
		d.advance()
	}
	if len(b.commit.GetEvents()) > before && cmd.GetId() != "" {
		b.commit.CommandIds = append(b.commit.CommandIds, cmd.GetId())
		b.commit.Subjects = append(b.commit.Subjects, subject)
		b.s.remember(Effect{ID: cmd.GetId(), Version: b.s.Version, Subject: subject})
	}
	return Result{Version: b.s.Version, Subject: subject}, nil
}

// mustNotHaveChanged holds the rule that a refusal comes before the first
// event. Breaking it is a bug that would leave half a command in the log, so
// the conversation crashes and is rebuilt from the log instead.
func (b *Batch) mustNotHaveChanged(before int, r *Refusal) {
	if n := len(b.commit.GetEvents()); n != before {
		panic(fmt.Sprintf("domain: refused after %s: %v", EventName(b.commit.GetEvents()[n-1]), r))
	}
}

// Commit is the batch as a commit, not yet sealed; nil when nothing happened.
func (b *Batch) Commit() *rollcallv1.Commit {
	if len(b.commit.GetEvents()) == 0 {
		return nil
	}
	return b.commit
}

// Size is about how many bytes the commit takes so far. One command keeps
// within a commit of 768 KiB; who decides several into one batch watches Size
// between them.
func (b *Batch) Size() int { return b.size }

// emit adds an event to the commit and to the state.
func (b *Batch) emit(m proto.Message) {
	e := NewEvent(m)
	if len(b.commit.GetEvents()) == 0 {
		b.s.head(b.commit)
	}
	b.commit.Events = append(b.commit.Events, e)
	b.size += proto.Size(e) + 8
	b.s.apply(e, uint32(len(b.commit.GetEvents())-1))
}
