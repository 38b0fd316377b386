// Package cli is the command line of Rollcall, one file a command.
//
// It is a client like any other: commands and reads go through package api,
// over NATS. Only run, demo and up start a node, through what the process gave
// it in [App]. Streams, environment and signals are injected, so that every
// command runs in a test as it does in a shell.
//
// Data goes to stdout, talk to stderr. Exit codes are those of package api.
//
// Read next: app.go, root.go, run.go.
package cli
