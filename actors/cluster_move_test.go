package actors_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// The two objectives of a team: each member does one task for each, and tells
// the Lead.
const (
	firstObjective  = "Objective one: make a fire."
	secondObjective = "Objective two: make a meal."
)

// chores are what the members do for the objectives.
var chores = map[string][2]string{"Ana": {"water", "rice"}, "Ben": {"wood", "fish"}}

func twoObjectives(_ context.Context, from model.Caller, r request) (model.Reply, error) {
	if from.Member == "Lead" {
		made := r.called("task_create")
		switch {
		case r.called("team_create") == 0:
			return calls(call("team_create", `{"name":"camp"}`), call("team_member_add", `{"name":"Ana","initial_prompt":"Be Ana."}`)), nil
		case r.called("team_member_add") == 1:
			return calls(call("team_member_add", `{"name":"Ben","initial_prompt":"Be Ben."}`), give("Ana", "water"), give("Ben", "wood")), nil
		case made == 2 && r.has(secondObjective):
			return calls(give("Ana", "rice"), give("Ben", "fish")), nil
		case made == 4 && r.has("rice is there") && r.has("fish is there"):
			return say("Objective two is done."), nil
		case made == 2 && r.has("water is there") && r.has("wood is there"):
			return say("Objective one is done."), nil
		}
		return say("They work."), nil
	}
	for i, chore := range chores[from.Member] {
		task := fmt.Sprintf("t%d", 2*i+1)
		if from.Member == "Ben" {
			task = fmt.Sprintf("t%d", 2*i+2)
		}
		switch {
		case !r.has("fetch " + chore):
		case r.called("fetch") == i:
			return calls(call("task_update", fmt.Sprintf(`{"task_id":%q,"status":"in_progress"}`, task)), call("fetch", `{}`)), nil
		case r.called("task_complete") == i:
			return calls(
				call("task_complete", fmt.Sprintf(`{"task_id":%q,"result":"%s of %s"}`, task, chore, from.Member)),
				call("send_message", fmt.Sprintf(`{"to":"lead","text":"%s is there"}`, chore)),
			), nil
		}
	}
	return say("I rest."), nil
}

func give(owner, chore string) *rollcallv1.ToolCall {
	return call("task_create", fmt.Sprintf(`{"title":%q,"description":"fetch %s","owner":%q}`, chore, chore, owner))
}

// move is a way in which the work of a node comes to another, that stands by.
type move struct {
	name string
	// lost: the first node could not let go of its work.
	lost bool
	// arm has it happen before the n-th append of the first, or at it.
	arm func(first *peer, n int)
}

var moves = []move{
	{"killed before", true, func(p *peer, n int) { p.store.Add(faulty.Fault{Point: faulty.Append, N: n, How: faulty.CrashBefore}) }},
	{"killed after", true, func(p *peer, n int) { p.store.Add(faulty.Fault{Point: faulty.Append, N: n, How: faulty.CrashAfter}) }},
	{"killed, its acknowledgement lost", true, func(p *peer, n int) {
		p.store.Add(faulty.Fault{Point: faulty.Append, N: n, How: faulty.CrashLosingAck})
	}},
	{"drained", false, func(p *peer, n int) { p.at(n, func() { _ = p.c.disk.Drain(context.Background(), p.name, true) }) }},
	{"stopped", false, func(p *peer, n int) { p.at(n, func() { go p.down() }) }},
	{"cut from its lease", true, func(p *peer, n int) {
		p.at(n, func() { p.link.cut(hang) })
	}},
}

// at does something before the n-th append of the node.
func (p *peer) at(n int, do func()) {
	p.link.set(func(l *link) {
		l.before = func(i int) {
			if i == n {
				do()
			}
		}
	})
}

// campaign is a story of two objectives that came to its end.
type campaign struct {
	*cluster
	first, second *peer
	// hired, working and again are the appends of the first node at which both
	// members are there, both have said what is there, and the second objective came.
	hired, working, again, appends int
}

// campaigns plays the story, with whatever arm does to the node that begins.
func campaigns(t *testing.T, arm func(first *peer)) *campaign {
	t.Helper()
	fetch := newDevice("fetch")
	fetch.idempotent, fetch.takes = true, 3*time.Second
	c := &campaign{cluster: newCluster(t, twoObjectives)}
	c.extra = []tool.Tool{fetch}
	c.snapshotEvery = 5
	c.first, c.second = c.pair()
	if arm != nil {
		arm(c.first)
	}
	so := func() int {
		c.first.link.mu.Lock()
		defer c.first.link.mu.Unlock()
		return c.first.link.appends
	}
	c.tell(openCommand(firstObjective))
	c.until("the members are there", func(s *domain.State) bool { return s.Opened && len(s.Members) == 3 })
	c.hired = so()
	c.until("the first objective ends", func(*domain.State) bool { return answered(c.events(), "Objective one is done.") })
	c.working = so()
	more := post("lead", secondObjective, rollcallv1.MailMode_MAIL_MODE_QUEUE)
	more.Id = "second"
	c.tell(more)
	c.until("the second objective is given", func(s *domain.State) bool { return len(s.Tasks) == 4 })
	c.again = so()
	c.until("the second objective ends", func(*domain.State) bool { return answered(c.events(), "Objective two is done.") })
	c.quiet()
	c.appends = so()
	return c
}

// tell sends a command whose answer nobody waits for.
func (w *world) tell(cmd *rollcallv1.Command) {
	w.t.Helper()
	if err := w.publish(w.disk, cmd, ""); err != nil {
		w.t.Fatal(err)
	}
}

func answered(events []*rollcallv1.Event, words string) bool {
	return count(events, (*rollcallv1.Event).GetLeadReplied, func(r *rollcallv1.LeadReplied) bool { return r.GetText().GetText() == words }) > 0
}

// TestClusterMoves plays a team with two objectives on two nodes, and moves it
// from one to the other at each commit, in every way. It comes to what it comes
// to undisturbed.
func TestClusterMoves(t *testing.T) {
	var want string
	var plain *campaign
	synctest.Test(t, func(t *testing.T) {
		plain = campaigns(t, nil)
		plain.check(t, 0)
		want = ending(t, plain.state(), plain.events())
		plain.first.down()
		plain.second.down()
	})
	if t.Failed() {
		return
	}
	t.Logf("%d commits: both are hired after %d, the first objective ends after %d", plain.appends, plain.hired, plain.working)
	if plain.hired < 3 || plain.working-plain.hired < 5 || plain.appends-plain.working < 5 {
		t.Fatal("the story has too few commits to be cut at")
	}
	var mu sync.Mutex
	moved := map[string]int{}
	play := func(from, to int) func(t *testing.T) {
		return func(t *testing.T) {
			for n := from; n <= to; n++ {
				for _, way := range []move{moves[n%3], moves[3+n%3]} { // one that loses the node, and another
					t.Run(fmt.Sprint(way.name, " at ", n), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							c := campaigns(t, func(p *peer) { way.arm(p, n) })
							defer c.second.down()
							defer c.first.down()
							lost := 0
							if way.lost {
								lost = 1
							}
							c.check(t, lost)
							if got := ending(t, c.state(), c.events()); got != want {
								t.Errorf("ended otherwise than undisturbed:\n%s\nwant\n%s\n%s", got, want, c.story())
							}
							if c.called(c.second.name) > 0 {
								mu.Lock()
								moved[way.name]++
								mu.Unlock()
							}
						})
					})
				}
			}
		}
	}
	// A member whose creation is broken off is there with all it has, or it is not
	// there; and the team that the next node finds is the one that was made.
	t.Run("b14-a-member-is-there-or-absent", play(1, plain.hired+1))
	// Two members at work are taken over as they are: no third begins, and each
	// result lands on its task.
	t.Run("b19-the-same-two-go-on", play(plain.hired+2, plain.working))
	// A second objective right after the first, with a move between the two and in
	// the middle of either.
	t.Run("b26-the-second-objective", play(plain.working+1, plain.appends-1))
	t.Logf("the work moved, and went on elsewhere: %v", moved)
	for _, way := range moves {
		if moved[way.name] < 2 {
			t.Errorf("%s: the work never moved", way.name)
		}
	}
}

// check holds the log against all that a move may not change.
func (c *campaign) check(t *testing.T, lost int) {
	t.Helper()
	events := c.events()
	justified(t, events, len(c.brain.record()))
	once(t, events)
	checkCalls(t, c.world, events, lost)
	c.fenced(t)
	if lost == 0 {
		c.apart(t)
	}
	c.entire(t)
	c.sameIDs(t)
	c.sameRoll(t)
}

// entire: no commit has half a member. Who is added has its brief and its run in
// the same commit.
func (c *campaign) entire(t *testing.T) {
	t.Helper()
	members := map[string]string{}
	err := c.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		for _, e := range r.Commit.GetEvents() {
			m := e.GetMemberAdded()
			if m == nil || m.GetMember() == "lead" {
				continue
			}
			members[m.GetMember()] = m.GetName()
			briefed, runs := false, false
			for _, e := range r.Commit.GetEvents() {
				d := e.GetMessageDelivered()
				briefed = briefed || d.GetTo() == m.GetMember() && d.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF
				runs = runs || e.GetRunStarted().GetMember() == m.GetMember()
			}
			if !briefed || !runs {
				t.Errorf("version %d has %s: with its brief %v, with its run %v", r.Commit.GetVersion(), m.GetName(), briefed, runs)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(members) != "map[m1:Ana m2:Ben]" {
		t.Errorf("the members are %v", members)
	}
}

var (
	callID = regexp.MustCompile(`"id":"(r[0-9-]+)"`)
	mailID = regexp.MustCompile(`<message id=\\?"(msg\d+)`)
)

// sameIDs: a step that is asked for again, elsewhere, is asked for with the same
// calls and the same mail, and perhaps with mail that came since.
func (c *campaign) sameIDs(t *testing.T) {
	t.Helper()
	type ids struct{ calls, mail []string }
	first, shown := map[string]ids{}, 0
	for _, s := range c.asked() {
		step := fmt.Sprint(s.from.Run, "/", s.from.Step)
		now := ids{callID.FindAllString(s.body, -1), mailID.FindAllString(s.body, -1)}
		was, again := first[step]
		if again && !slices.Equal(was.calls, now.calls) {
			t.Errorf("step %s is asked for with the calls %v, and by %s with %v", step, was.calls, s.node, now.calls)
		}
		for i, id := range was.mail {
			if i >= len(now.mail) || now.mail[i] != id {
				t.Errorf("step %s is asked for with the mail %v, and by %s with %v", step, was.mail, s.node, now.mail)
				break
			}
		}
		first[step] = now
		shown += len(now.mail) * len(now.calls)
	}
	if shown == 0 {
		t.Error("no request shows calls and mail")
	}
}

// sameRoll: what the members' actors say of themselves, where they live now, is
// what the log alone says.
func (c *campaign) sameRoll(t *testing.T) {
	t.Helper()
	var at *peer
	for _, p := range []*peer{c.first, c.second} {
		if p.name == c.owner() {
			at = p
		}
	}
	if at == nil {
		t.Fatalf("the owner is %q", c.owner())
	}
	present, err := at.Roll(t.Context(), key)
	if err != nil || len(present) != 3 {
		t.Fatalf("the roll at %s: %v, %v", at.name, present, err)
	}
	alone := domain.New(key)
	err = c.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		alone.Evolve(r.Commit)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range present {
		if want := stateHash(t, alone.Member(p.Member)); p.StateHash != want || p.Node != at.name || p.Version != alone.Version {
			t.Errorf("%s at %s: state %s of version %d; the log alone gives %s at %d", p.Name, p.Node, p.StateHash, p.Version, want, alone.Version)
		}
	}
}
