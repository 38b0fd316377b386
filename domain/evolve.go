package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Evolve folds one commit into the state: the one way a state changes. It
// never fails: whether commits follow each other is checked before, by
// [CheckNext], and events that it does not know change nothing.
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
}

// Committed notes the hash of a commit of this state's own batch, once it is
// sealed and stored.
func (s *State) Committed(c *rollcallv1.Commit) { s.LastHash = slices.Clone(c.GetHash()) }

// apply folds one event. Its place is index in the state's version.
func (s *State) apply(e *rollcallv1.Event, index uint32) {
	at := Place{Version: s.Version, Index: index, Size: weight(e)}
	if !s.applyTeam(e) && !s.applyBoard(e) && !s.applyMail(e, at) {
		s.applyRun(e, at)
	}
}
