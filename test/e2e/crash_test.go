package e2e_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// How often nodes are killed, and where that may be changed: ROLLCALL_SOAK is
// the number of kills, or 1 for a day's work; ROLLCALL_SEED chooses the same
// moments again.
const (
	someKills = 50
	soakKills = 1000
)

func killing(t *testing.T) (kills int, rng *rand.Rand) {
	t.Helper()
	number := func(name string, def uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return def
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	def := uint64(someKills)
	if os.Getenv("ROLLCALL_SOAK") == "1" {
		def = soakKills
	} else if n := number("ROLLCALL_SOAK", 0); n > 0 {
		def = n
	}
	seed := number("ROLLCALL_SEED", rand.Uint64())
	t.Logf("crash-everywhere-process: %d kills, ROLLCALL_SEED=%d", def, seed)
	return int(def), rand.New(rand.NewPCG(seed, 0))
}

// crash-everywhere-process: real nodes are killed with SIGKILL at random times.
// Every story ends as it does undisturbed, and each kill costs at most one model
// call a run that was open.
func TestCrashEverywhereProcess(t *testing.T) {
	t.Parallel()
	kills, rng := killing(t)
	p := newPlace(t, storiesScript(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(kills)*20*time.Second)
	defer cancel()
	p.start()
	c := p.client()
	c.Patience = 0 // however long it takes

	want := map[string]string{}
	var told []*telling
	begin := func() {
		for _, s := range stories {
			told = append(told, p.tell(ctx, c, s))
		}
	}
	begin()
	for _, one := range told {
		p.heard(c, one)
		want[one.name] = comesTo(t, p.state(c, one.id), p.events(c, one.id))
	}
	begin()
	before := len(p.models.Requests())
	killed := 0
	kill := func() {
		p.kill() // SIGKILL
		killed++
		p.spawn()
	}
	for killed < kills {
		p.random(ctx, rng)
		kill()
		for killed < kills && rng.IntN(4) == 0 { // a node that only just began
			wait(rng, 250*time.Millisecond)
			kill()
		}
		p.ready()
		if p.ended(c, told) {
			begin()
		}
	}

	resumed, extra := 0, 0
	for _, one := range told {
		p.heard(c, one)
		s, events := p.state(c, one.id), p.events(c, one.id)
		if got := comesTo(t, s, events); got != want[one.name] {
			t.Errorf("%s (%s) ended otherwise than undisturbed:\n%s\nwant\n%s", one.name, one.id, got, want[one.name])
		}
		r, e := p.taken(one.id, events, killed)
		resumed, extra = resumed+r, extra+e
	}
	if resumed < kills/2 {
		t.Errorf("%d runs were taken up after %d kills: they met nobody at work", resumed, killed)
	}
	t.Logf("%d kills, %d stories, %d runs taken up, %d model calls of %d made again", killed, len(told), resumed, extra, len(p.models.Requests())-before)
	var ids []string
	for _, one := range told {
		ids = append(ids, one.id)
	}
	p.settle(c, ids...)
}

// random waits until some calls more were answered, or all rests, and a little
// longer.
func (p *place) random(ctx context.Context, rng *rand.Rand) {
	p.t.Helper()
	answered := func() (n int) {
		for _, r := range p.models.Requests() {
			if r.Ended && !r.Gone {
				n++
			}
		}
		return n
	}
	until := answered() + rng.IntN(12)
	limit, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for answered() < until && limit.Err() == nil {
		<-time.After(5 * time.Millisecond)
	}
	wait(rng, 100*time.Millisecond)
}

func wait(rng *rand.Rand, most time.Duration) { <-time.After(time.Duration(rng.Int64N(int64(most)))) }

// ended reports whether all stories have ended.
func (p *place) ended(c *api.Client, told []*telling) bool {
	for _, one := range told {
		if len(one.done) == 0 || !quiet(p.state(c, one.id)) {
			return false
		}
	}
	return true
}

// heard waits for the end of a story.
func (p *place) heard(c *api.Client, one *telling) {
	p.t.Helper()
	if err := <-one.done; err != nil {
		p.t.Fatalf("%s: %v", one.name, err)
	}
	one.done <- nil
	p.until(c, one.id, one.name+" ends", func(s *domain.State) bool { return quiet(s) && len(s.OpenTasks()) == 0 && len(s.Tasks) > 0 })
}

// taken counts how often runs of a conversation were taken up, and the model
// calls beyond one a step: by the model server's own record no run may have more
// of these than it was taken up.
func (p *place) taken(id string, events []*rollcallv1.Event, kills int) (resumed, extra int) {
	p.t.Helper()
	up, calls, steps := map[string]int{}, map[string]int{}, map[string]map[string]bool{}
	for _, e := range events {
		if r := e.GetRunResumed(); r != nil {
			up[r.GetRun()]++
			resumed++
		}
	}
	for _, r := range p.asked(id, "") {
		calls[r.Run]++
		if steps[r.Run] == nil {
			steps[r.Run] = map[string]bool{}
		}
		steps[r.Run][r.Step] = true
	}
	for run, n := range calls {
		more := n - len(steps[run])
		extra += more
		if more > up[run] || up[run] > kills {
			p.t.Errorf("run %s of %s made %d calls too many; it was taken up %d times", run, id, more, up[run])
		}
	}
	return resumed, extra
}
