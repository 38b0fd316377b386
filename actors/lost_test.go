package actors_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A run that gets on outlasts any number of lost nodes; one that loses its node
// again and again at the same step fails, and says so.
func TestRunOutlastsLostNodesWhileItGetsOn(t *testing.T) {
	const losses = 12
	for _, getsOn := range []bool{true, false} {
		t.Run(fmt.Sprintf("gets on %v", getsOn), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var open atomic.Bool // the first call after a start is answered
				w := newWorld(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
					done := r.called("task_list")
					switch {
					case done == losses:
						return say("done"), nil
					case open.CompareAndSwap(true, false):
						return calls(call("task_list", fmt.Sprintf(`{"n":%d}`, done))), nil // no two are identical
					}
					<-ctx.Done()
					return model.Reply{}, ctx.Err()
				})
				n, store := w.node()
				defer func() { w.close(n) }()
				w.open("go on")
				for i := range losses {
					asked := i + 1
					if getsOn {
						asked = 2*i + 1
					}
					s := w.until("it is asked", func(s *domain.State) bool {
						return len(w.brain.record()) >= asked || finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_FAILED) > 0
					})
					if s.Lead().Run == nil {
						break
					}
					store.Crash()
					w.close(n)
					open.Store(getsOn)
					n, store = w.node()
				}
				w.quiet()
				failed := finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_FAILED)
				if getsOn && (failed != 0 || resumed(w.events()) != losses) || !getsOn && (failed != 1 || resumed(w.events()) != 10) {
					t.Errorf("%d runs failed, %d times taken up\n%s", failed, resumed(w.events()), w.story())
				}
			})
		})
	}
}
