// Package eval plays the same seven situations with any model and measures what
// came of them: how good the result is, how the model used the team, and whether
// the runtime kept its promises. The three are judged apart, by different
// evidence.
//
//   - Quality is judged from the answer and the delivered files alone: facts that
//     must be there, and claims that stand in no input.
//   - Conduct is counted in the log: needless teams, redundant members, duplicate
//     work, refused calls, polling, hits of guards, work left undelivered.
//   - Promises are the runtime's own, read in the log too: nobody starts before
//     what it depends on is delivered, nobody runs between a restart and new mail.
//
// The judges are pure functions; only play.go speaks to a node.
//
// Read next: case.go, quality.go, book.go, conduct.go, play.go.
package eval
