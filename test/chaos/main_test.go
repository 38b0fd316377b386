// Package chaos_test breaks a cluster on purpose while it works: real
// nats-servers and real nodes, each a process of its own, with a cutter in every
// wire between them. Nodes and servers are killed, stopped and woken, cut off
// one way or both; leaders step down; clocks differ. At the end everything is
// mended, every conversation comes to rest, and what lies in the log is held
// against the model server's record by test/checker, which knows none of our
// code.
//
// Every run prints its seed; ROLLCALL_SEED gives the same plan of faults again.
// ROLLCALL_SOAK makes it long (`make soak`). Read next: network_test.go, how
// wires are cut; plan_test.go, what happens when; docs/reliability.md, what came
// of it.
package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds what should take some seconds, also on a slow machine under
// the race detector: the election of a new leader at NATS alone may take ten.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	defer os.RemoveAll(built.dir) //nolint:errcheck // a temporary directory
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built.dir)
		os.Exit(code)
	}))
}

// seeds says which plans of faults to run: the one of ROLLCALL_SEED, or some
// that are always the same, and one that nobody has seen; with ROLLCALL_SOAK=n,
// n of the latter.
func seeds(t *testing.T, always ...uint64) []uint64 {
	t.Helper()
	if text := os.Getenv("ROLLCALL_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("ROLLCALL_SEED: %v", err)
		}
		return []uint64{n}
	}
	fresh := 1
	if n := soak(t); n > 0 {
		fresh = n
	}
	for range fresh {
		always = append(always, rand.Uint64N(1_000_000))
	}
	return always
}

// soakSeeds is how many plans ROLLCALL_SOAK=1 is.
const soakSeeds = 40

func soak(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ROLLCALL_SOAK")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("ROLLCALL_SOAK: %v", err)
	}
	if n == 1 {
		return soakSeeds
	}
	return n
}

// chance is the source of a seed's choices.
func chance(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("ROLLCALL_SEED=%d go test -race -v -run '%s' ./test/chaos", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

// built holds the programs that this package builds, each once.
var built struct {
	sync.Mutex
	dir      string
	programs map[string]string
}

// build compiles a package of ours or of a module in go.mod, once a test
// binary, and gives the path of the program.
func build(t testing.TB, name, pkg string, flags ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path := built.programs[name]; path != "" {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "rollcall-chaos-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.programs = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, name)
	args := append(append([]string{"build", "-o", path}, flags...), pkg)
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	built.programs[name] = path
	return path
}

// poll waits for a condition outside. It rests as long as a look takes.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	pollFor(t, patience, what, ok)
}

func pollFor(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		began := time.Now()
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(max(20*time.Millisecond, 2*time.Since(began)))
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// names gives n names: n1, n2, ….
func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i+1))
	}
	return all
}
