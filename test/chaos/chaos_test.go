package chaos_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// ciSeeds are the plans of CI, always the same; a fresh one comes with each.
var ciSeeds = []uint64{11}

// TestChaos: three nodes on three servers, one of the nodes with a clock ten
// minutes ahead, clients that open conversations, write and publish, and two
// plans at once: one breaks nodes and clients, the other servers.
func TestChaos(t *testing.T) {
	for _, seed := range seeds(t, ciSeeds...) {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
			t.Parallel()
			steps := 7
			if soak(t) > 0 {
				steps = 24
			}
			chaos(t, seed, steps)
		})
	}
}

func chaos(t *testing.T, seed uint64, steps int) {
	t.Helper()
	rng := chance(t, seed)
	w := newWorld(t, script(), rollcall(t), skewed(t), rollcall(t))
	ofNodes := draw(rng, steps, nodeFaults, names("n", 3), 6*time.Second, 2*time.Second)
	ofNodes = append(ofNodes, draw(rng, steps/3, []kind{deafen, silence, partition}, []string{"flyer1", "noter1", "noter2"}, 4*time.Second, time.Second)...)
	rng.Shuffle(len(ofNodes), func(i, j int) { ofNodes[i], ofNodes[j] = ofNodes[j], ofNodes[i] })
	ofServers := draw(rng, steps/2, serverFaults, append(w.servers.names(), theLeader, theLeader), 5*time.Second, 4*time.Second)
	t.Logf("the plan for nodes and clients:\n%vand for servers:\n%v", ofNodes, ofServers)

	working, stop := context.WithCancel(t.Context())
	load := w.begin(working, seed, 2, 2)
	var wg sync.WaitGroup
	wg.Go(func() { w.b.play(t.Context(), ofServers) })
	w.b.play(t.Context(), ofNodes)
	wg.Wait()
	w.b.revive()
	w.servers.ready()
	stop()
	w.judge(load.end())
}
