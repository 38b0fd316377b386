package domain_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var update = flag.Bool("update", false, "write the list of the events' fields anew")

// fromLater is an event of a kind that this program does not know.
func fromLater(t *testing.T) *rollcallv1.Event {
	t.Helper()
	e := new(rollcallv1.Event)
	// Field 4000, a message of three bytes.
	if err := proto.Unmarshal([]byte{0x82, 0xfa, 0x01, 0x03, 0x0a, 0x01, 'x'}, e); err != nil {
		t.Fatal(err)
	}
	return e
}

// Nothing is decided on what a newer program wrote, however it shows, also
// after what this one understands again, and after a snapshot.
func TestNewerCommitIsNotDecidedOn(t *testing.T) {
	for name, commit := range map[string]*rollcallv1.Commit{
		"a newer version":     {EvolveVersion: domain.EvolveVersion + 1, Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.ConversationPaused{})}},
		"no event it knows":   {EvolveVersion: domain.EvolveVersion + 2},
		"an unknown kind":     {EvolveVersion: domain.EvolveVersion, Events: []*rollcallv1.Event{fromLater(t)}},
		"one among known":     {EvolveVersion: domain.EvolveVersion, Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.ConversationPaused{}), fromLater(t)}},
		"said by no version":  {Events: []*rollcallv1.Event{fromLater(t)}},
		"a far newer version": {EvolveVersion: 1 << 31},
	} {
		t.Run(name, func(t *testing.T) {
			k := open(t)
			if err := k.State.Understood(); err != nil {
				t.Fatalf("before: %v", err)
			}
			commit.Version, commit.PreviousHash, commit.Epoch, commit.Node = k.State.Version+1, k.State.LastHash, k.State.Epoch, "n1"
			if _, err := domain.Seal(commit); err != nil {
				t.Fatal(err)
			}
			s := k.State
			s.Evolve(commit)
			after := &rollcallv1.Commit{
				Version: s.Version + 1, PreviousHash: s.LastHash, Epoch: s.Epoch, Node: "n1", EvolveVersion: domain.EvolveVersion,
				Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.ConversationResumed{})},
			}
			if _, err := domain.Seal(after); err != nil {
				t.Fatal(err)
			}
			s.Evolve(after)
			data, err := s.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			kept, err := domain.Unmarshal(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*domain.State{s, kept} {
				_, err := s.Begin(k.Rules, domain.Stamp{Time: time.Now(), Node: "n1", Epoch: s.Epoch + 1, CommitID: "c"})
				r, ok := err.(*domain.Refusal) //nolint:errorlint // as Begin says
				if !ok || r.Code != "commit-newer" || r.Try == "" {
					t.Errorf("a decision on it: %v", err)
				}
				if want := max(commit.GetEvolveVersion(), domain.EvolveVersion+1); s.Newer != want {
					t.Errorf("it asks for version %d, want %d", s.Newer, want)
				}
			}
		})
	}
}

// Commits of earlier versions, and of this one, are decided on.
func TestOlderCommitIsDecidedOn(t *testing.T) {
	k := open(t)
	for _, version := range []uint32{0, 1, domain.EvolveVersion} {
		c := &rollcallv1.Commit{
			Version: k.State.Version + 1, PreviousHash: k.State.LastHash, Epoch: k.State.Epoch, EvolveVersion: version,
			Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.ConversationPaused{})},
		}
		if _, err := domain.Seal(c); err != nil {
			t.Fatal(err)
		}
		k.State.Evolve(c)
	}
	if err := k.State.Understood(); err != nil {
		t.Error(err)
	}
}

// What events are made of belongs to a version of the fold: an older program,
// which would pass over what is new, knows by that number to keep its hands off.
func TestEventsBelongToAnEvolveVersion(t *testing.T) {
	var lines []string
	seen := map[protoreflect.FullName]bool{}
	var list func(protoreflect.MessageDescriptor)
	list = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] || !strings.HasPrefix(string(m.FullName()), "rollcall.") {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			kind := f.Kind().String()
			if e := f.Enum(); e != nil {
				kind += fmt.Sprintf(" %s of %d values", e.Name(), e.Values().Len())
			}
			lines = append(lines, fmt.Sprintf("%s.%s = %d %s %s", m.Name(), f.Name(), f.Number(), f.Cardinality(), kind))
			if f.Message() != nil {
				list(f.Message())
			}
		}
	}
	list((&rollcallv1.Commit{}).ProtoReflect().Descriptor())
	slices.Sort(lines)
	file := fmt.Sprintf("testdata/events-%d.txt", domain.EvolveVersion)
	now := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(file) //nolint:gosec // the test's own
	if err != nil {
		t.Fatalf("%v: write the list of this version: go test ./domain -run TestEventsBelong -update", err)
	}
	if string(was) == now {
		return
	}
	for _, l := range lines {
		if !strings.Contains(string(was), l+"\n") {
			t.Errorf("new: %s", l)
		}
	}
	for l := range strings.Lines(string(was)) {
		if !strings.Contains(now, l) {
			t.Errorf("gone: %s", l)
		}
	}
	t.Errorf("the events are not those of version %d: raise domain.EvolveVersion if a release has it, then go test ./domain -run TestEventsBelong -update", domain.EvolveVersion)
}
