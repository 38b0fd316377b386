package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/node"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// program is what a process under test runs.
func program([]string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	settings, err := config.Load(config.Sources{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir := settings.Data
	n, err := node.Start(ctx, node.Config{Settings: settings, Version: "0.0.0", Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	url, token := n.Address()
	if err := nodefile.Write(dir, nodefile.Info{PID: os.Getpid(), URL: url, Token: token}); err != nil {
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
