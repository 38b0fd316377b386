package e2e_test

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/node"
)

// program is what a process under test runs: the same wiring as cmd/rollcall.
func program(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := cli.App{
		Args: args, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Version: "0.0.0-e2e", Width: cli.Width, Spawn: cli.Spawn, Terminate: cli.Terminate,
		StartNode: func(ctx context.Context, c cli.NodeConfig) (cli.Node, error) {
			return node.Start(ctx, node.Config(c))
		},
	}
	return app.Run(ctx)
}
