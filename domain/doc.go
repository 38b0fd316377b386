// Package domain is Rollcall's core: what a conversation is and how it changes.
//
// A conversation (a Lead, its team, their board, their mail and their runs) is
// one State. A command is decided into events by [Batch.Decide], events are
// folded by [State.Evolve], and [Due] lists the work that the state owes. All
// of it is pure: no I/O, no clock, no chance. Time and ids come in with the
// [Stamp]. The same fold serves live actors, recovery, projections, audit and
// tests.
//
// Read next: state.go, batch.go, run.go, then package contract.
package domain
