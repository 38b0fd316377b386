package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const week = 7 * 24 * time.Hour

// asker asks the operator, and goes on with what he says.
func asker(_ context.Context, from model.Caller, r request) (model.Reply, error) {
	switch {
	case from.Member == "Lead" && r.called("team_create") == 0:
		return calls(call("team_create", `{"name":"painters"}`), call("team_member_add", `{"name":"Ana","initial_prompt":"Buy the paint."}`)), nil
	case from.Member == "Ana" && r.called("send_message") == 0:
		return calls(call("send_message", `{"to":"user","text":"Which colour?","wait_for_reply":true}`)), nil
	case from.Member == "Ana" && r.has("Blue.") && r.has("Buy the paint."):
		return say("Blue it is."), nil
	}
	return say("She is at it."), nil
}

// anchor-week: to wait for a reply for a week holds no anchor: the inbox is
// empty all the time, whether the node lives through it or is started again in
// between, and the answer wakes one run.
func TestAnchorWeek(t *testing.T) {
	for name, restart := range map[string]bool{"one node": false, "started again every day": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, asker)
				w.disk.LeaseTTL = time.Minute // as on a node that has its own server
				n, _ := w.node()
				defer func() { w.close(n) }()
				w.open("Paint the shed.")
				s := w.quiet()
				if ana := s.Named("Ana"); ana == nil || len(ana.Waits) != 1 {
					t.Fatalf("Ana does not wait\n%s", w.story())
				}
				before, version := len(w.brain.record()), s.Version
				rest(t, w, n, week/2)
				for day := range 7 {
					if restart {
						w.close(n)
						n, _ = w.node()
					}
					rest(t, w, n, time.Duration(day)*time.Hour)
				}
				rest(t, w, n, week/2)
				if made := len(w.brain.record()) - before; made != 0 || w.state().Version != version {
					t.Fatalf("%d calls and %d commits in a week of waiting", made, w.state().Version-version)
				}
				w.do(post("m1", "Blue.", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
				s = w.quiet()
				if calls := w.brain.record()[before:]; len(calls) != 1 || calls[0].from.Member != "Ana" {
					t.Errorf("the answer made the calls %v", calls)
				}
				runs := count(w.events(), (*rollcallv1.Event).GetRunStarted, func(r *rollcallv1.RunStarted) bool { return r.GetMember() == "m1" })
				if ana := s.Named("Ana"); runs != 2 || len(ana.Waits) != 0 || len(ana.Unread) != 0 {
					t.Errorf("Ana had %d runs, and still waits %v\n%s", runs, ana.Waits, w.story())
				}
				justified(t, w.events(), len(w.brain.record()))
			})
		})
	}
}

// rest lets time pass, and looks into the inbox all the while.
func rest(t *testing.T, w *world, n *actors.Node, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		<-time.After(min(time.Hour, time.Until(end)))
		synctest.Wait()
		if held := w.disk.Pending(key.Partition()); held != 0 {
			t.Fatalf("the inbox holds %d messages", held)
		}
		if _, quiet := n.Quiet(); !quiet || len(domain.Due(w.state())) != 0 {
			t.Fatal("the node is busy")
		}
	}
}
