package chaos_test

import (
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// judge ends a test, when all is mended and everybody rests: it holds the log
// against the model server's record, and against what was acknowledged.
func (w *world) judge(told []said) {
	w.t.Helper()
	record := w.models.Requests()
	logs := w.logs()
	var calls []checker.Request
	for _, r := range record {
		calls = append(calls, checker.Request{
			Conversation: r.Conversation, Member: r.Member, Run: r.Run, Step: r.Step, Body: r.Body, Time: r.Time,
		})
	}
	for _, f := range checker.CheckAll(logs, calls) {
		w.t.Error(f)
	}
	commits, extra, resumed := 0, 0, 0
	of := map[string][]eventstore.Recorded{}
	for _, l := range logs {
		of[l.Conversation] = w.commits(l.Conversation)
		commits += len(l.Commits)
		more, up := w.bounded(l.Conversation, of[l.Conversation])
		extra, resumed = extra+more, resumed+up
	}
	w.kept(of, told)
	w.emptied()
	hashes := w.replayed(of)
	w.t.Logf("%d conversations, %d commits, %d model calls; runs were taken up %d times, which cost %d calls more; %d messages acknowledged",
		len(logs), commits, len(record), resumed, extra, len(told))
	w.restarted(hashes, len(record))
}

func (w *world) logs() (logs []checker.Log) {
	w.t.Helper()
	poll(w.t, "the log is read", func() bool {
		ctx, cancel := within(30 * time.Second)
		defer cancel()
		var err error
		logs, err = checker.Read(ctx, w.admin)
		return err == nil
	})
	return logs
}

// bounded: a run is taken up at most once by each claim of its partition, and
// costs at most one model call more each time.
func (w *world) bounded(id string, commits []eventstore.Recorded) (extra, resumed int) {
	w.t.Helper()
	up, began := map[string][]uint64{}, map[string]uint64{}
	for _, r := range commits {
		for _, e := range r.Commit.GetEvents() {
			if s := e.GetRunStarted(); s != nil {
				began[s.GetRun()] = r.Commit.GetEpoch()
			}
			if s := e.GetRunResumed(); s != nil && !s.GetWaited() {
				up[s.GetRun()] = append(up[s.GetRun()], r.Commit.GetEpoch())
				resumed++
			}
		}
	}
	for run, epochs := range up {
		last := began[run]
		for _, epoch := range epochs {
			if epoch <= last {
				w.t.Errorf("run %s of %s is taken up by claim %d, and was worked on by claim %d", run, id, epoch, last)
			}
			last = epoch
		}
	}
	type step struct{ run, step string }
	calls, runs := map[step]int{}, map[string]int{}
	for _, r := range w.asked(id) {
		calls[step{r.Run, r.Step}]++
	}
	for s, n := range calls {
		runs[s.run] += n - 1
		extra += n - 1
	}
	for run, n := range runs {
		if n > len(up[run]) {
			w.t.Errorf("run %s of %s made %d model calls too many, and was taken up %d times", run, id, n, len(up[run]))
		}
	}
	return extra, resumed
}

// kept: what was acknowledged stands in the log, once; what was not, at most once.
func (w *world) kept(of map[string][]eventstore.Recorded, told []said) {
	w.t.Helper()
	found := map[string]int{}
	for id, commits := range of {
		for _, r := range commits {
			for _, e := range r.Commit.GetEvents() {
				switch k := e.GetKind().(type) {
				case *rollcallv1.Event_MessageDelivered:
					if k.MessageDelivered.GetFrom() == "operator" {
						found[id+k.MessageDelivered.GetBody().GetText()]++
					}
				case *rollcallv1.Event_ConversationOpened:
					found[id]++
				}
			}
		}
	}
	for _, s := range told {
		switch n := found[s.conversation+s.text]; {
		case n == 0 && s.acknowledged:
			w.t.Errorf("%s: %q was acknowledged (%s) and is not in the log", s.conversation, s.text, s.how)
		case n > 1:
			w.t.Errorf("%s: %q stands in the log %d times (%s)", s.conversation, s.text, n, s.how)
		}
	}
}

// emptied: nothing is left in the inbox, and nothing went to the dead letters.
func (w *world) emptied() {
	w.t.Helper()
	js := must[jetstream.JetStream](w.t)(jetstream.New(w.admin))
	left := func(name string) (n uint64) {
		poll(w.t, name+" can be asked", func() bool {
			ctx, cancel := within(tryFor)
			defer cancel()
			s, err := js.Stream(ctx, name)
			if err == nil {
				n = s.CachedInfo().State.Msgs
			}
			return err == nil
		})
		return n
	}
	poll(w.t, "the inbox is empty", func() bool { return left(eventstore.StreamInbox) == 0 })
	if n := left(eventstore.StreamDead); n != 0 {
		w.t.Errorf("%d messages went to the dead letters", n)
	}
}

// replayed: the log alone gives every request that a model was sent, and the
// state that the nodes have.
func (w *world) replayed(of map[string][]eventstore.Recorded) map[string]string {
	w.t.Helper()
	hashes := map[string]string{}
	for id, commits := range of {
		var sealed [][]byte
		for _, r := range commits {
			sealed = append(sealed, r.Raw)
		}
		report := audit.Check(keyOf(id), sealed, func(b *rollcallv1.Blob) ([]byte, error) {
			ctx, cancel := within(patience)
			defer cancel()
			return w.log.GetBlob(ctx, keyOf(id), b)
		})
		report.Compare(w.models.Requests())
		for _, problem := range report.Problems {
			w.t.Errorf("audit of %s: %v", id, problem)
		}
		hashes[id] = report.StateHash
	}
	w.sameStates(hashes, "have come to rest")
	return hashes
}

// sameStates: the members answer the roll from their actors with the states that
// the log gives.
func (w *world) sameStates(hashes map[string]string, when string) {
	w.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(hashes)) {
		detail, err := w.c.Show(w.ctx(), api.ReadRequest{Conversation: id, AtLeast: uint64(len(w.commits(id)))})
		if err != nil {
			w.t.Errorf("show %s when all %s: %v", id, when, err)
		} else if detail.StateHash != hashes[id] {
			w.t.Errorf("a node shows the state %s of %s when all %s, the log gives %s", detail.StateHash, id, when, hashes[id])
		}
	}
}

// restarted: all nodes are killed, start again, and have the states they had,
// while no model is called.
func (w *world) restarted(hashes map[string]string, calls int) {
	w.t.Helper()
	for _, n := range w.nodes {
		n.proc.kill()
		n.start()
	}
	for _, n := range w.nodes {
		n.ready()
	}
	w.settled()
	w.sameStates(hashes, "are restarted")
	if n := len(w.models.Requests()); n != calls {
		w.t.Errorf("%d model calls by starting again", n-calls)
	}
}

// said is what a client told a conversation, or that it opened one.
type said struct {
	conversation, text string
	acknowledged       bool
	// how it was said.
	how string
}
