// Package audit reads a conversation's log as a stranger would and says what
// is wrong with it: a broken chain, a run that no mail justifies, a message
// consumed twice, two open runs of a member, a request that cannot be computed
// again. It calls no model and needs no node: sealed commits are enough.
//
// [Check] folds one log into a [Report]; [Report.Compare] holds it against a
// model server's own record.
package audit
