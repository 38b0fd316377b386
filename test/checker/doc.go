// Package checker judges a run of Rollcall from outside: the conversations'
// logs, read from the stream by what docs/subjects.md says of it, against the
// record that a model server kept of what it was asked.
//
// It is independent of the product: it shares the generated protobuf and
// nothing else, keeps books of its own (book*.go) and holds the promises as
// small rules (rule_*.go, listed in rules.go), so that a mistake in the code
// that decides, folds or audits shows here. It does not know how a request is
// built, and no date matters to it but the order of a commit and the call that
// it began.
//
// [Check] judges one log and [CheckAll] all of an installation; [Read] reads
// them from JetStream, and [FromCommits] takes commits that are at hand.
package checker
