package chaos_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TestMeasure takes the figures of docs/reliability.md. It proves nothing and
// needs a quiet machine, so it runs only when it is asked for.
func TestMeasure(t *testing.T) {
	if os.Getenv("ROLLCALL_MEASURE") == "" {
		t.Skip("a measurement: ROLLCALL_MEASURE=1 go test -v -run TestMeasure ./test/chaos")
	}
	const rounds = 5
	var words []string
	for i := range rounds {
		words = append(words, fmt.Sprintf("kill%d", i), fmt.Sprintf("term%d", i))
	}
	w := newWorld(t, script(words...), rollcall(t), rollcall(t), rollcall(t))
	w.settled()
	shares := map[string]int{}
	for _, o := range w.cluster().Owners {
		shares[o.Node]++
	}
	t.Logf("balance of %d partitions over 3 nodes: %v", domain.Partitions, values(shares))

	var killed, handed, next, gone, elected []time.Duration
	for i := range rounds {
		s := w.inMidRun(fmt.Sprintf("kill%d", i))
		begun := time.Now()
		s.owner.proc.kill()
		s.called(2)
		killed = append(killed, time.Since(begun))
		s.ends()
		s.owner.start()
		s.owner.ready()
		w.settled()
	}
	for i := range rounds {
		s := w.inMidRun(fmt.Sprintf("term%d", i))
		from := s.owner.lasting()
		begun := time.Now()
		go s.owner.term(patience)
		poll(t, "another owns it", func() bool {
			o := w.cluster().Owners[keyOf(s.id).Partition()].Node
			return o != "" && o != from
		})
		handed = append(handed, time.Since(begun))
		s.called(2)
		next = append(next, time.Since(begun))
		<-s.owner.proc.done
		gone = append(gone, time.Since(begun))
		s.ends()
		s.owner.start()
		s.owner.ready()
		w.settled()
	}
	t.Logf("from kill -9 of the owner to the next step of the interrupted run: %v", spread(killed))
	t.Logf("from SIGTERM to owned by another: %v; to its next step: %v; to the end of the process: %v", spread(handed), spread(next), spread(gone))
	refused, sent, slowest := w.refusals(t)
	t.Logf("messages sent while nodes were killed and stopped in turn: %d, refused: %d, slowest answer %v", sent, refused, slowest.Round(10*time.Millisecond))

	// What NATS itself takes: its leader is killed, and the log takes commits again.
	for i := range rounds {
		lead := w.servers.named(w.b.leader())
		id := api.NewID()
		begun := time.Now()
		lead.kill()
		if err := w.open(w.ctx(), w.c, id, "election", "Note it."); err != nil {
			t.Fatal(err)
		}
		poll(t, "it is opened", func() bool { return len(w.commits(id)) > 0 })
		elected = append(elected, time.Since(begun))
		lead.start()
		w.servers.ready()
		rest(t.Context(), time.Duration(i+1)*100*time.Millisecond)
	}
	t.Logf("from kill -9 of the NATS server that leads the log to the next commit: %v", spread(elected))
}

// refusals sends messages without a pause while each node in turn is killed, or
// stopped in good order, and started again.
func (w *world) refusals(t *testing.T) (refused, sent int, slowest time.Duration) {
	id := api.NewID()
	if err := w.open(w.ctx(), w.c, id, "messages", "Note it."); err != nil {
		t.Fatal(err)
	}
	poll(t, "it is opened", func() bool { return len(w.commits(id)) > 0 })
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			begun := time.Now()
			_, err := w.c.Send(w.ctx(), id, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: fmt.Sprint("note ", sent)}})
			sent++
			if err != nil {
				refused++
				t.Logf("refused: %v", err)
			}
			slowest = max(slowest, time.Since(begun))
		}
	})
	for _, n := range w.nodes {
		n.proc.kill()
		n.start()
		n.ready()
		w.settled()
		n.term(patience)
		n.start()
		n.ready()
		w.settled()
	}
	close(stop)
	wg.Wait()
	return refused, sent, slowest
}

func values(m map[string]int) (all []int) {
	for _, n := range m {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// spread tells the least, the middle and the most.
func spread(all []time.Duration) string {
	slices.Sort(all)
	var b strings.Builder
	for i, d := range []time.Duration{all[0], all[len(all)/2], all[len(all)-1]} {
		fmt.Fprintf(&b, "%s%.2f", []string{"", " / ", " / "}[i], d.Seconds())
	}
	return b.String() + " s (least / middle / most)"
}
