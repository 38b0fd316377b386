// Package actors is the engine inside a node: mailboxes and supervised life
// for partitions, conversations and members, on Proto.Actor.
//
//	node -> partition -> conversation -> member, which owns its run
//
// A partition holds the lease and receives the inbox. A conversation is the
// one writer of its log: it decides, commits, and only then acts. A member
// does one thing at a time outside the actor, a model call or a tool call, in
// a goroutine that it owns and that always ends in a command to its
// conversation. No actor ever blocks: everything that waits is a goroutine
// that ends in a message.
//
// Nothing here is truth. Every actor can be thrown away and comes back from
// the log.
//
// Read next: conversation.go, commit.go, effects.go.
package actors
