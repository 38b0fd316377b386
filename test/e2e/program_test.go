package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/internal/node"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// program is what a process under test runs.
func program([]string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	dir := os.Getenv("ROLLCALL_DATA")
	n, err := node.Start(ctx, node.Config{
		Dir: dir, Version: "0.0.0", SyncAlways: true, Model: os.Getenv("ROLLCALL_MODEL"), BaseURL: os.Getenv("OPENAI_BASE_URL"),
		Key: os.Getenv("OPENAI_API_KEY"), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := nodefile.Write(dir, nodefile.Info{PID: os.Getpid(), URL: n.URL, Token: n.Token}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := n.Close(closing); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
