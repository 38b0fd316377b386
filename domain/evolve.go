package domain

import (
	"fmt"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Evolve folds one commit into the state: the one way a state changes. It
// never fails: whether commits follow each other is checked before, by
// [CheckNext], and events that it does not know change nothing but [State.Newer].
func (s *State) Evolve(c *rollcallv1.Commit) {
	s.head(c)
	for i, e := range c.GetEvents() {
		s.apply(e, uint32(i))
	}
	for i, id := range c.GetCommandIds() {
		var subject string
		if i < len(c.GetSubjects()) {
			subject = c.GetSubjects()[i]
		}
		s.remember(Effect{ID: id, Version: s.Version, Subject: subject})
	}
	s.Committed(c)
}

// head takes what a commit says about itself.
func (s *State) head(c *rollcallv1.Commit) {
	s.Version = c.GetVersion()
	s.Epoch = c.GetEpoch()
	s.Time = c.GetTime().AsTime()
	if v := c.GetEvolveVersion(); v > EvolveVersion {
		s.Newer = max(s.Newer, v)
	}
}

// Understood refuses a state that rests on what a newer program wrote. It can be
// shown, for what it is worth, but a decision on it could be wrong: it lacks
// what an event did that this program does not know.
func (s *State) Understood() error {
	if s.Newer == 0 {
		return nil
	}
	return Refuse("commit-newer", fmt.Sprintf("this node cannot work on %s", s.Key),
		fmt.Sprintf("a newer Rollcall wrote in its log (events of version %d, this program knows %d)", s.Newer, EvolveVersion),
		"leave it to nodes of the newer version, or start one")
}

// Committed notes the hash of a commit of this state's own batch, once it is
// sealed and stored.
func (s *State) Committed(c *rollcallv1.Commit) { s.LastHash = slices.Clone(c.GetHash()) }

// apply folds one event. Its place is index in the state's version.
func (s *State) apply(e *rollcallv1.Event, index uint32) {
	if e.GetKind() == nil {
		s.Newer = max(s.Newer, EvolveVersion+1)
	}
	at := Place{Version: s.Version, Index: index, Size: weight(e)}
	if !s.applyTeam(e) && !s.applyBoard(e) && !s.applyMail(e, at) && !s.applyApproval(e) && !s.applyGuard(e) {
		s.applyRun(e, at)
	}
	s.guarded(e)
}
