package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"testing"
	"time"
)

// The test binary is the program when a process under test is started from it.
func TestMain(m *testing.M) {
	if os.Getenv(beBench) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err := run(ctx, os.Args[1:], os.Stdout)
		stop()
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every workload in miniature does its work right: nothing is lost or doubled,
// and the model is asked no more often than there was something to answer.
// Nothing is timed.
func TestWorkloads(t *testing.T) {
	for name := range workloads {
		for _, system := range []string{"rollcall", "floor"} {
			if system == "floor" && (name == "w4" || name == "w5") {
				continue // it recovers nothing
			}
			t.Run(name+" "+system, func(t *testing.T) {
				t.Parallel()
				b, err := newBench(io.Discard, 0.03)
				if err != nil {
					t.Fatal(err)
				}
				defer b.close()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				f, err := b.run(ctx, name, system, "interval")
				if err != nil {
					t.Fatal(err)
				}
				faults := 0
				for figure, v := range f {
					if !isFault(figure) {
						continue
					}
					faults++
					if v != 0 {
						t.Errorf("%s: %v", figure, v)
					}
				}
				if faults == 0 {
					t.Error("the workload looks for no fault")
				}
			})
		}
	}
}
