// Command rollcall runs teams of LLM agents on an event log.
//
// It wires the command line to a node and exits; what commands do is in
// package cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/node"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "0.1.0-dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second Ctrl-C ends the process at once
	}()
	app := cli.App{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Version: version, Width: cli.Width, Spawn: cli.Spawn, Terminate: cli.Terminate,
		StartNode: func(ctx context.Context, c cli.NodeConfig) (cli.Node, error) {
			return node.Start(ctx, node.Config(c))
		},
	}
	os.Exit(app.Run(ctx))
}
