package eval_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/node"
)

// asNode is set where this test program is started again as a node.
const asNode = "ROLLCALL_EVAL_TEST_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(asNode) != "" {
		os.Exit(program())
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// program is the product, as cmd/rollcall wires it.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := cli.App{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Version: "1.2.3-test", Width: cli.Width, Spawn: cli.Spawn, Terminate: cli.Terminate,
		StartNode: func(ctx context.Context, c cli.NodeConfig) (cli.Node, error) {
			return node.Start(ctx, node.Config(c))
		},
	}
	return app.Run(ctx)
}

// evaluate is the command in this process; its nodes are processes of their own.
func evaluate(t *testing.T, out, err io.Writer, args ...string) int {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"HOME": home, "TMPDIR": home}
	app := cli.App{
		Args: append([]string{"eval"}, args...), In: os.Stdin, Out: out, Err: err, Dir: home, Version: "1.2.3-test",
		Env:   func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Width: func(io.Writer) int { return 0 },
		Spawn: func(c cli.Child) (cli.Process, error) {
			c.Env = append(c.Env, asNode+"=yes", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
			return cli.Spawn(c)
		},
	}
	return app.Run(t.Context())
}
