// Package projections keeps read models of the log in an embedded SQLite file:
// conversations, members, tasks, mail, runs, usage and files, ready to be
// listed, searched and summed.
//
// The file is a cache. Its position in the log is written in the transaction
// that writes the rows, so every commit counts exactly once, whenever the
// process dies; a file that is missing, older, damaged or of another log is
// made again from the first commit. Nothing may be kept here that is not in
// the log, and no decision may be taken from it: deciding needs a State.
//
// Status, members and tasks are those of the conversation's domain.State,
// which is folded along and kept beside the rows. History that a state lets go
// (read mail, finished runs, usage) comes from the events.
//
// Read next: run.go (how the log is followed), fold.go (how a commit becomes
// rows), views.go (what queries answer).
package projections
