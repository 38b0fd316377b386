// Command bench says what the core costs. It runs the workloads W1 to W5
// against Rollcall and against the floor beneath it (bare JetStream with the
// same sync policy, and a bare HTTP call to the same model server), each in a
// process of its own, and prints the figures and their ratio.
//
//	go run ./test/bench                         every workload, both sync policies
//	go run ./test/bench -w w1a,w5 -sync always  some of them
//	go run ./test/bench -serve rollcall …       one system behind the HTTP protocol of protocol.go
//
// What the figures mean, and what they were, is in docs/performance.md. Read
// next: protocol.go, then rollcall.go and floor.go; workloads are w1.go to w5.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program, without the exit.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	serve := flags.String("serve", "", "be a system under test: rollcall or floor")
	var o options
	flags.StringVar(&o.addr, "addr", "127.0.0.1:0", "with -serve: address to listen on")
	flags.StringVar(&o.stub, "stub", "", "with -serve: base address of the model server, ending in /v1")
	flags.StringVar(&o.data, "data", "", "with -serve: data directory")
	flags.StringVar(&o.sync, "sync", "always,interval", "always (fsync before each acknowledgement) or interval; without -serve a list")
	flags.StringVar(&o.memory, "memory", "transcript", "what a member is shown of its past: transcript or fresh")
	flags.StringVar(&o.profile, "pprof", "", "with -serve: address for net/http/pprof")
	work := flags.String("w", "w1a,w1b,w1lat,w2,w3,w4,w5", "workloads")
	runs := flags.Int("runs", 1, "runs of each workload; the medians are printed")
	scale := flags.Float64("scale", 1, "share of a workload's size, above 0 to 1")
	systems := flags.String("systems", "rollcall,floor", "systems to run")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if *serve != "" {
		return serveSystem(ctx, *serve, o)
	}
	b, err := newBench(out, *scale)
	if err != nil {
		return err
	}
	defer b.close()
	return b.all(ctx, strings.Split(*work, ","), strings.Split(*systems, ","), strings.Split(o.sync, ","), *runs)
}

// options of a system under test.
type options struct {
	addr, stub, data, sync, memory, profile string
}

// always reports whether every acknowledgement waits for an fsync.
func (o options) always() bool { return o.sync != "interval" }

// serveSystem runs one system until ctx ends.
func serveSystem(ctx context.Context, name string, o options) error {
	var s system
	var err error
	switch name {
	case "rollcall":
		s, err = startRollcall(ctx, o)
	case "floor":
		s, err = startFloor(ctx, o)
	default:
		return fmt.Errorf("there is no system %q: rollcall or floor", name)
	}
	if err != nil {
		return err
	}
	return errors.Join(listen(ctx, o, s), s.close())
}
