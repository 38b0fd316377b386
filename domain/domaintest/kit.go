// Package domaintest is a given/when/then kit over the deciders that run in
// production. A [Kit] is one conversation: commands go in, and after every
// commit it checks that the log, folded from its sealed bytes, gives the same
// state, and that the invariants of [Check] hold.
//
// It is for tests only.
package domaintest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// T is what the kit needs of a test: a *testing.T or a *rapid.T.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Key of the kit's conversation.
var Key = domain.Key{Tenant: "main", Conversation: "01jd0000000000000000000000"}

// Start is the time of the first commit; each later one is a second after.
var Start = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// Kit is one conversation under test.
type Kit struct {
	T
	Rules *domain.Rules
	State *domain.State
	// Commits so far, sealed.
	Commits []*rollcallv1.Commit
	// Node and Epoch of the next commits.
	Node  string
	Epoch uint64

	folded *domain.State
	ledger *ledger
	ids    int
}

// New is a conversation that is not yet open.
func New(t T, rules *domain.Rules) *Kit {
	return &Kit{T: t, Rules: rules, State: domain.New(Key), folded: domain.New(Key), ledger: newLedger(), Node: "n1", Epoch: 1}
}

// Open is a conversation that is open, with the given contract and no words of
// the operator.
func Open(t T, rules *domain.Rules, contract string) *Kit {
	t.Helper()
	k := New(t, rules)
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Contract: contract}}})
	return k
}

// Do decides commands into one commit and returns its events. A refusal fails
// the test.
func (k *Kit) Do(cmds ...*rollcallv1.Command) []*rollcallv1.Event {
	k.Helper()
	b := k.begin()
	for _, cmd := range cmds {
		if _, err := b.Decide(k.named(cmd)); err != nil {
			k.Fatalf("refused: %v", err)
		}
	}
	return k.store(b)
}

// Try decides one command and returns its result and its refusal, if any.
func (k *Kit) Try(cmd *rollcallv1.Command) (domain.Result, *domain.Refusal) {
	k.Helper()
	before := k.State.Hash()
	b := k.begin()
	result, err := b.Decide(k.named(cmd))
	if err != nil {
		refusal, ok := err.(*domain.Refusal)
		if !ok {
			k.Fatalf("error is no refusal: %v", err)
		}
		if refusal.Code == "" || refusal.What == "" || refusal.Why == "" || refusal.Try == "" {
			k.Fatalf("refusal says too little: %+v", refusal)
		}
		if k.State.Hash() != before || b.Commit() != nil {
			k.Fatalf("a refusal changed the state: %v", err)
		}
		return result, refusal
	}
	k.store(b)
	return result, nil
}

// Refused decides a command that must be refused with the code.
func (k *Kit) Refused(code string, cmd *rollcallv1.Command) *domain.Refusal {
	k.Helper()
	_, refusal := k.Try(cmd)
	if refusal == nil {
		k.Fatalf("%s was not refused, want %s", Describe(cmd), code)
	} else if refusal.Code != code {
		k.Fatalf("refused with %v, want %s", refusal, code)
	}
	return refusal
}

func (k *Kit) begin() *domain.Batch {
	k.Helper()
	n := len(k.Commits)
	b, err := k.State.Begin(k.Rules, domain.Stamp{
		Time: Start.Add(time.Duration(n) * time.Second), Node: k.Node, Epoch: k.Epoch, CommitID: fmt.Sprintf("commit-%d", n+1),
	})
	if err != nil {
		k.Fatalf("begin: %v", err)
	}
	return b
}

func (k *Kit) named(cmd *rollcallv1.Command) *rollcallv1.Command {
	if cmd.GetId() == "" {
		k.ids++
		cmd.Id = fmt.Sprintf("command-%d", k.ids)
	}
	return cmd
}

// store seals the batch, folds the sealed bytes, and compares.
func (k *Kit) store(b *domain.Batch) []*rollcallv1.Event {
	k.Helper()
	c := b.Commit()
	if c == nil {
		return nil
	}
	raw, err := domain.Seal(c)
	if err != nil {
		k.Fatalf("seal: %v", err)
	}
	k.State.Committed(c)
	stored, err := domain.Unseal(raw)
	if err != nil {
		k.Fatalf("unseal: %v", err)
	}
	if err := domain.CheckNext(k.folded.Version, k.folded.LastHash, stored); err != nil {
		k.Fatalf("%v", err)
	}
	k.folded.Evolve(stored)
	k.Commits = append(k.Commits, stored)
	k.compare()
	if err := k.ledger.commit(stored); err != nil {
		k.Fatalf("%v", err)
	}
	if err := k.ledger.holds(k.State); err != nil {
		k.Fatalf("after version %d: %v", c.GetVersion(), err)
	}
	return stored.GetEvents()
}

// compare holds the promise that the state is a fold of the log, and that a
// snapshot comes back equal.
func (k *Kit) compare() {
	k.Helper()
	live := k.marshal(k.State)
	if folded := k.marshal(k.folded); !bytes.Equal(live, folded) {
		k.Fatalf("the fold of the log differs from the decided state:\nlive   %s\nfolded %s", live, folded)
	}
	back, err := domain.Unmarshal(live)
	if err != nil {
		k.Fatalf("unmarshal: %v", err)
	}
	if again := k.marshal(back); !bytes.Equal(again, live) {
		k.Fatalf("a snapshot does not come back equal:\nbefore %s\nafter  %s", live, again)
	}
}

func (k *Kit) marshal(s *domain.State) []byte {
	k.Helper()
	data, err := s.Marshal()
	if err != nil {
		k.Fatalf("marshal: %v", err)
	}
	return data
}

// Restart replaces the state by the fold of the log, as after a lost node.
func (k *Kit) Restart() {
	k.Helper()
	s := domain.New(Key)
	for _, c := range k.Commits {
		s.Evolve(c)
	}
	if s.Hash() != k.State.Hash() {
		k.Fatalf("restart gives another state")
	}
	k.State = s
}

// Member of that id, which must exist.
func (k *Kit) Member(id string) *domain.Member {
	k.Helper()
	m := k.State.Member(id)
	if m == nil {
		k.Fatalf("there is no member %s", id)
	}
	return m
}

// Task of that id, which must exist.
func (k *Kit) Task(id string) *domain.Task {
	k.Helper()
	t := k.State.Task(id)
	if t == nil {
		k.Fatalf("there is no task %s", id)
	}
	return t
}

// Event at a place of the log.
func (k *Kit) Event(ref *rollcallv1.Ref) *rollcallv1.Event {
	k.Helper()
	if v := ref.GetVersion(); v == 0 || v > uint64(len(k.Commits)) || int(ref.GetIndex()) >= len(k.Commits[v-1].GetEvents()) {
		k.Fatalf("no event at %v", ref)
	}
	return k.Commits[ref.GetVersion()-1].GetEvents()[ref.GetIndex()]
}
