// Package api is what a node offers over NATS and how everybody asks for it.
//
// [Serve] answers the micro service "rollcall" on rollcall.api.<tenant>.<verb>.
// A write becomes a command in the inbox and is answered when it is durable; a
// read folds the log. [Feed] publishes live commits and streamed text, which
// nobody needs for being right. [Client] is the other side, used by the
// command line and by any Go program; its Follow misses and repeats nothing,
// because it reads the log and takes the feed only as a hint.
//
// The package never touches an actor: it is a user of the inbox and the log
// like any other.
//
// Read next: event.go for the documented line of an event, server.go, follow.go.
package api
